from pathlib import Path

from hookloop.runs.layout import RunDir
from hookloop.runs.reader import Best, list_runs, summarize

SUMMARY = {
    "status": "completed",
    "reason": "",
    "started": "2026-01-31T09:00:00+00:00",
    "ended": "2026-01-31T09:01:30+00:00",
    "iter": 40,
    "epoch": 2,
    "best": {
        "val/loss": {"value": 0.1, "iter": 20, "epoch": 1},
        "val/accuracy": {"value": 0.98, "iter": 40, "epoch": 2},
    },
}


def make(path: Path, **changes: object) -> RunDir:
    run = RunDir.create(path)
    run.write_summary({**SUMMARY, **changes})
    return run


def test_a_finished_run_tells_how_it_ended(tmp_path: Path) -> None:
    run = summarize(make(tmp_path / "a"), tmp_path)
    assert (run.name, run.status, run.epochs, run.iters) == ("a", "completed", 2, 40)
    assert run.best == Best("val/accuracy", 0.98, 2)
    assert run.seconds == 90


def test_a_run_without_an_end_is_running_as_far_as_its_metrics_tell(tmp_path: Path) -> None:
    run = make(tmp_path, status="running", ended=None, iter=0, epoch=0, best=None)
    run.metrics_file.write_text('{"time": 1769850010.0, "iter": 7, "epoch": 1}\n')
    summary = summarize(run)
    assert (summary.status, summary.iters, summary.epochs) == ("running", 7, 1)
    assert summary.best is None
    assert summary.seconds == 10


def test_a_run_with_metrics_only_is_a_run(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").touch()
    (run,) = list_runs(tmp_path)
    assert (run.status, run.started, run.seconds) == ("running", None, None)
    assert run.name == tmp_path.name


def test_runs_are_found_at_any_depth_the_oldest_first(tmp_path: Path) -> None:
    make(tmp_path / "b" / "late", started="2026-03-01T00:00:00+00:00")
    make(tmp_path / "a", started="2026-02-01T00:00:00")
    make(tmp_path / "c" / "early" / "x", started="2026-01-01T00:00:00+00:00")
    (tmp_path / "other").mkdir()
    make(tmp_path / ".hidden")
    assert [run.name for run in list_runs(tmp_path)] == ["c/early/x", "a", "b/late"]


def test_a_damaged_summary_does_not_hide_the_other_runs(tmp_path: Path) -> None:
    make(tmp_path / "good")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "summary.json").write_text("{")
    assert [run.status for run in list_runs(tmp_path)] == ["unreadable", "completed"]


def test_a_directory_without_runs_has_none(tmp_path: Path) -> None:
    assert list_runs(tmp_path) == []
    assert list_runs(tmp_path / "missing") == []


def test_a_loss_is_shown_when_nothing_else_was_measured(tmp_path: Path) -> None:
    run = summarize(make(tmp_path, best={"val/loss": {"value": 0.1, "iter": 2, "epoch": 1}}))
    assert run.best == Best("val/loss", 0.1, 1)
