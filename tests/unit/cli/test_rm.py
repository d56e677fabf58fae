import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from hookloop.cli.main import cli
from hookloop.runs.layout import RunDir


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, status in (("a", "completed"), ("b", "failed"), ("c", "running")):
        RunDir.create(Path("runs") / name).write_summary({"status": status})
    (tmp_path / "runs" / "c" / ".lock").write_text("")  # Its process is gone.
    return tmp_path / "runs"


def invoke(*arguments):
    return CliRunner().invoke(cli, ["rm", *arguments])


def test_it_asks_unless_it_is_told_not_to(runs):
    asked = invoke("runs/a")
    assert asked.exit_code == 2
    assert "runs/a (completed" in asked.output
    assert "--yes deletes them" in asked.output
    done = invoke("runs/a", "--yes", "--json")
    result = json.loads(done.stdout)
    assert result["deleted"] == ["runs/a"]
    assert result["bytes"] > 0
    assert sorted(path.name for path in runs.iterdir()) == ["b", "c"]


def test_runs_are_chosen_by_how_they_ended(runs):
    assert invoke("runs", "--failed", "--dead", "--yes").exit_code == 0
    assert [path.name for path in runs.iterdir()] == ["a"]
    assert "There is no such run." in invoke("runs", "--dead", "--yes").output


def test_one_mistake_keeps_all(runs):
    assert invoke("runs/a", "runs", "--yes").exit_code == 2
    assert len(list(runs.iterdir())) == 3
    assert invoke("nothing", "--failed", "--yes").exit_code == 2
