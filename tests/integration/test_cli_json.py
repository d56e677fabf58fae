"""Commands in processes of their own: the exit code, and the JSON read back by another program."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from tests import warm
from tests.unit.cli.conftest import CONFIG, MODULE

from hookloop.runs.layout import RunDir

pytestmark = pytest.mark.slow

LOADER = """
from torch.utils.data import DataLoader, TensorDataset


def loader(batch_size: int = 8):
    inputs = torch.randn(64, 2, generator=torch.Generator().manual_seed(0))
    return DataLoader(TensorDataset(inputs, inputs.sum(1, keepdim=True)), batch_size=batch_size)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "cli_project.py").write_text(MODULE + LOADER)
    (tmp_path / "config.yaml").write_text(CONFIG + "hooks: [SnapshotSource]\n")
    return tmp_path


def hookloop(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return warm.run(*arguments, cwd=cwd, env=dict(os.environ))


@pytest.fixture
def trained(project: Path) -> Path:
    done = hookloop("train", "config.yaml", "--run-dir", "runs/a", cwd=project)
    assert done.returncode == 0, done.stderr
    return project


def test_find_batch(project: Path) -> None:
    part = "train_data={type: cli_project.loader, batch_size: 4}"
    done = hookloop("find-batch", "config.yaml", part, "--most", "32", "--json", cwd=project)
    assert done.returncode == 0 and "All sizes up to 32 fit" in done.stderr
    found = json.loads(done.stdout)
    assert (found["largest"], found["limited_by_memory"]) == (32, False)
    assert found["override"] == "train_data.batch_size=32"
    assert [trial["size"] for trial in found["trials"]] == [2, 4, 8, 16, 32]
    assert not (project / "runs").exists()
    # What it says can be given to train as it is.
    again = hookloop("train", "config.yaml", part, found["override"], cwd=project)
    assert again.returncode == 0, again.stderr


def test_find_batch_without_a_loader(project: Path) -> None:
    done = hookloop("find-batch", "config.yaml", "--json", cwd=project)
    assert done.returncode == json.loads(done.stdout)["exit_code"] == 2
    assert "needs a DataLoader" in json.loads(done.stdout)["error"]


def test_reproduce(trained: Path) -> None:
    asked = ("reproduce", "runs/a", "--trust", "--json", "--run-dir", "runs/b")
    done = hookloop(*asked, cwd=trained)
    assert done.returncode == 0 and "are the same bits" in done.stderr
    found = json.loads(done.stdout)
    assert (found["equal"], found["different"], found["differences"]) == (True, 0, [])
    assert (found["run_dir"], found["environment"], found["notes"]) == ("runs/b", [], [])
    # Without somebody who can answer, the code of a run is not run.
    untrusted = hookloop("reproduce", "runs/a", "--json", cwd=trained)
    assert untrusted.returncode == json.loads(untrusted.stdout)["exit_code"] == 2
    assert "say --trust" in json.loads(untrusted.stdout)["error"]


def test_reproduce_with_other_code(trained: Path) -> None:
    changed = MODULE.replace("manual_seed(seed)", "manual_seed(9)")
    (trained / "cli_project.py").write_text(changed)
    done = hookloop("reproduce", "runs/a", "--no-sources", "--json", cwd=trained)
    assert done.returncode == 1 and "numbers differ" in done.stderr
    found = json.loads(done.stdout)
    assert found["equal"] is False and found["different"] > 0
    assert RunDir(trained / found["run_dir"]).read_summary()["status"] == "completed"


def test_resume_with_a_change(trained: Path) -> None:
    asked = ("resume", "runs/a", "optimizer.lr=0.01", "max_epochs=3", "--json")
    refused = hookloop(*asked, cwd=trained)
    assert refused.returncode == json.loads(refused.stdout)["exit_code"] == 2
    assert "If the change is meant, say so: --change" in json.loads(refused.stdout)["error"]
    done = hookloop(*asked, "--change", cwd=trained)
    assert done.returncode == 0 and "warning" not in done.stderr
    outcome = json.loads(done.stdout)
    assert outcome["status"] == "completed"
    # The change is in the run, and reproduce tells of it.
    changes = RunDir(trained / "runs/a").read_summary()["changes"]
    assert isinstance(changes, list)
    assert {one["key"]: (one["old"], one["new"], one["iter"]) for one in changes} == {
        "max_epochs": (2, 3, 8),
        "optimizer.lr": (0.1, 0.01, 8),
    }
    again = hookloop("reproduce", "runs/a", "--trust", "--json", cwd=trained)
    assert again.returncode == 1
    assert "optimizer.lr was changed from 0.1 to 0.01" in " ".join(
        json.loads(again.stdout)["notes"]
    )


def test_schema(project: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    import yaml

    done = hookloop("schema", cwd=project)
    assert (done.returncode, done.stderr) == (0, "")
    schema = json.loads(done.stdout)
    config = yaml.safe_load((project / "config.yaml").read_text())
    jsonschema.validate(config, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(config | {"max_epoch": 2}, schema)
    asked = hookloop("schema", "--json", cwd=project)
    assert (asked.returncode, json.loads(asked.stdout)) == (0, schema)


def test_what_is_made_for_a_user_is_told_as_json(project: Path) -> None:
    made = json.loads(hookloop("new", "fresh", "--json", cwd=project).stdout)
    assert (made["directory"], made["name"], made["exit_code"]) == ("fresh", "fresh", 0)
    assert all((project / "fresh" / name).is_file() for name in made["files"])
    told = json.loads(hookloop("completion", "bash", "--json", cwd=project).stdout)
    script = hookloop("completion", "bash", cwd=project).stdout
    assert (told["shell"], told["script"]) == ("bash", script.removesuffix("\n"))
