from pathlib import Path

from click.testing import CliRunner

from hookloop.cli.main import cli
from hookloop.runs.layout import RunDir


def test_runs_are_listed_with_outcome_and_best_metric(tmp_path: Path) -> None:
    RunDir.create(tmp_path / "one").write_summary(
        {
            "status": "stopped",
            "reason": "8 epochs are done",
            "started": "2026-01-31T09:00:00+00:00",
            "ended": "2026-01-31T10:01:30+00:00",
            "iter": 64,
            "epoch": 8,
            "best": {"val/accuracy": {"value": 0.98765, "iter": 40, "epoch": 5}},
        }
    )
    header, line = CliRunner().invoke(cli, ["runs", str(tmp_path)]).output.splitlines()
    assert header.split() == ["run", "outcome", "epochs", "iters", "best", "started", "duration"]
    assert line.startswith("one  stopped (8 epochs are done)  8       64     val/accuracy 0.9877 ")
    assert line.endswith("1:01:30")


def test_no_runs_and_no_directory_are_told_apart(tmp_path: Path) -> None:
    assert "There is no run in" in CliRunner().invoke(cli, ["runs", str(tmp_path)]).output
    missing = CliRunner().invoke(cli, ["runs", str(tmp_path / "x")])
    assert missing.exit_code == 2
    assert "there is no directory" in missing.output
