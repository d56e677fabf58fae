"""Commands of other packages."""

import json
import sys

import pytest
from click.testing import CliRunner

from hookloop.cli.main import cli
from hookloop.cli.shared import plugged

COMMAND = """
import click
from hookloop.commands import print_text, reporting, set_result


@click.command("count", short_help="Count to a number.")
@click.argument("number", type=int)
@reporting
def command(number):
    set_result({"numbers": list(range(number))})
    print_text(" ".join(map(str, range(number))))
    return 0
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a package that has a command, as pip does."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(code, requires="hookloop", name="counting"):
        (tmp_path / f"{name}.py").write_text(code)
        about = tmp_path / f"{name}-1.5.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\nRequires-Dist: {requires}\n"
        )
        (about / "entry_points.txt").write_text(f"[hookloop.commands]\ncount = {name}:command\n")
        plugged.plugged_verbs.cache_clear()

    yield write
    plugged.plugged_verbs.cache_clear()
    sys.modules.pop("counting", None)


def run(*arguments):
    return CliRunner().invoke(cli, arguments)


def test_a_command_of_another_package_is_one_like_ours(install):
    install(COMMAND)
    assert run("count", "3").output == "0 1 2\n"
    assert json.loads(run("count", "3", "--json").stdout) == {"numbers": [0, 1, 2], "exit_code": 0}
    assert "--traceback" in run("count", "--help").output
    listed = run("--help").output
    assert "Count to a number." in listed.partition("From other packages:")[2]
    assert "Did you mean 'count'?" in run("coumt", "3").output


def test_a_package_for_another_engine_says_what_to_install(install):
    install(COMMAND, requires="hookloop==0.1.*")
    done = run("count", "3")
    assert done.exit_code == 2
    assert "counting 1.5 needs hookloop 0.1.*, and this is" in done.output
    assert "pip install 'counting==0." in done.output
    assert run("--help").exit_code == 0


@pytest.mark.parametrize("code", ["import nothing_that_exists", "command = 5"])
def test_a_package_that_is_broken_hides_no_other_command(install, code):
    install(code)
    listed = run("--help")
    assert listed.exit_code == 0 and "It cannot be loaded." in listed.output
    done = run("count", "3")
    assert done.exit_code == 2
    assert "The command 'count' of counting cannot be loaded: " in done.output


def test_without_its_package_the_board_says_what_to_install(monkeypatch):
    monkeypatch.setattr(plugged, "GROUP", "hookloop.nothing")
    plugged.plugged_verbs.cache_clear()
    try:
        assert "pip install 'hookloop[board]'" in " ".join(run("--help").output.split())
        done = run("board", "runs", "--port", "0")
        assert done.exit_code == 2 and "pip install 'hookloop[board]'" in done.output
        assert run("board", "--help").exit_code == 0
    finally:
        plugged.plugged_verbs.cache_clear()
