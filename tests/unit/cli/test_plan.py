"""``hookloop plan``: the hooks at each mount point, in order."""

from pathlib import Path

from tests.unit.cli.conftest import Invoke

from hookloop.engine.points import POINTS


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


def test_the_learning_rate_of_the_whole_run_is_drawn(project: Path, invoke: Invoke) -> None:
    schedule = "schedule={type: StepLR, step_size: 2}"
    result = invoke("plan", "config.yaml", schedule, "max_epochs=20")
    assert result.exit_code == 0, result.output
    drawn = next(line for line in result.stdout.splitlines() if line.startswith("lr "))
    assert "█" in drawn and "StepLR" in drawn
    assert "every: 1 epoch" in result.stdout
    fits = invoke("plan", "config.yaml", "schedule={type: StepLR, step_size: 2, every: 8 epochs}")
    assert "warning" not in fits.stdout


def test_check_reports_a_schedule_in_another_unit(project: Path, invoke: Invoke) -> None:
    schedule = "schedule={type: StepLR, step_size: 2}"
    result = invoke("check", "config.yaml", schedule, "max_epochs=20")
    assert result.exit_code == 0
    assert "warning: The schedule StepLR" in result.stdout
