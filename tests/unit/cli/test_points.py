from click.testing import CliRunner

from hookloop.cli.main import cli
from hookloop.engine.points import POINTS


def test_every_point_is_listed_in_the_order_of_a_run() -> None:
    lines = CliRunner().invoke(cli, ["points"]).output.splitlines()
    assert [line.partition("(")[0] for line in lines[1:]] == [point.name for point in POINTS]
    assert lines[1].startswith("before_run(run)")
