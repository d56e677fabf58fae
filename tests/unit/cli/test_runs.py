import json
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


def test_columns_order_and_choice_are_the_users(tmp_path: Path) -> None:
    for name, lr, accuracy in (("one", 0.1, 0.5), ("two", 0.01, 0.9), ("three", 0.001, 0.7)):
        run = RunDir.create(tmp_path / name)
        run.write_config({"name": name, "seed": 0, "optimizer": {"lr": lr}})
        best = {"val/accuracy": {"value": accuracy, "epoch": 1}}
        metrics = {"val/accuracy": accuracy - 0.1}
        run.write_summary({"status": "completed", "metrics": metrics, "best": best})

    def invoke(*options: str) -> str:
        return CliRunner().invoke(cli, ["runs", str(tmp_path), *options]).stdout

    header = invoke().splitlines()[0].split()
    assert header[4:7] == ["optimizer.lr", "best", "last"]
    chosen = invoke("--columns", "optimizer.lr,val/accuracy", "--sort", "-val/accuracy")
    assert [line.split() for line in chosen.splitlines()] == [
        ["run", "optimizer.lr", "val/accuracy"],
        ["two", "0.01", "0.8"],
        ["three", "0.001", "0.6"],
        ["one", "0.1", "0.4"],
    ]
    few = invoke("--filter", "optimizer.lr<0.05", "--filter", "val/accuracy>0.1", "--csv")
    assert few.splitlines()[1].startswith("three,completed,0,0,0.001,")
    assert len(few.splitlines()) == 3
    listed = json.loads(invoke("--sort", "optimizer.lr", "--reverse", "--json"))
    assert [run["run"] for run in listed] == ["one", "two", "three"]
    assert listed[0]["config"] == {"name": "one", "seed": 0, "optimizer.lr": 0.1}
    assert json.loads(invoke("--filter", "status=failed", "--json")) == []
    assert "There is no such run" in invoke("--filter", "status=failed")


def test_an_unknown_column_is_rejected(tmp_path: Path) -> None:
    RunDir.create(tmp_path / "one").write_summary({"metrics": {"val/accuracy": 0.5}})
    for option in ("--columns", "--sort"):
        done = CliRunner().invoke(cli, ["runs", str(tmp_path), option, "val/acuracy"])
        assert done.exit_code == 2
        assert "Did you mean 'val/accuracy'" in done.output
