"""``hookloop plan``: the hooks at each mount point, in order."""

from pathlib import Path

from tests.unit.cli.conftest import Invoke

from hookloop.core.points import POINTS


def test_each_point_is_named_once_with_its_hooks_in_order(project: Path, invoke: Invoke) -> None:
    result = invoke("plan", "config.yaml", "hooks=[{StopAfter: {epochs: 1}}]")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["point", "hook", "priority", "every", "reads", "writes"]
    named = [line.split()[0] for line in lines[1:-2] if not line.startswith(" ")]
    assert len(named) == len(set(named))
    assert any("stop_after" in line for line in lines)
    unused = lines[-1].removeprefix("No hook acts at: ").removesuffix(".").split(", ")
    assert sorted(named + unused) == sorted(point.name for point in POINTS)


def test_nothing_is_written(project: Path, invoke: Invoke) -> None:
    invoke("plan", "config.yaml")
    assert not (project / "runs").exists()


def test_a_config_that_cannot_be_trained_is_rejected(project: Path, invoke: Invoke) -> None:
    result = invoke("plan", "config.yaml", "hooks=[StopAftr]")
    assert result.exit_code == 2
    assert "Did you mean 'StopAfter'?" in result.stderr
