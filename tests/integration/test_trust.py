"""Directories that somebody else made: what is taken from them, and what is not."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from tests import warm
from tests.names import epoch_file

pytestmark = pytest.mark.slow

NET = """
import torch


def net():
    return torch.nn.Linear(2, 2)


def data():
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(32, 2, generator=generator)
    return torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(inputs, (inputs[:, 0] > 0).long()), batch_size=16
    )
"""

CONFIG = """
model: net.net
train_data: net.data
loss: CrossEntropyLoss
optimizer: {type: SGD, lr: 0.1}
max_epochs: 1
seed: 1
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "net.py").write_text(NET)
    (tmp_path / "mine.yaml").write_text(CONFIG)
    return tmp_path


def hookloop(project: Path, *arguments: str, code: int = 0, **variables: str) -> str:
    environment = {**os.environ, "NO_COLOR": "1", **variables}
    done = subprocess.run(
        [warm.command(), *arguments],
        cwd=project,
        env=environment,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )
    assert done.returncode == code, done.stdout
    return done.stdout


def plant_code(run: Path) -> Path:
    """Make a directory whose config runs code as soon as it is built, or its base is read."""
    trace = run / "trace"
    code = f"open({str(trace)!r}, 'a').write('ran')\n"
    (run / "evil.py").write_text(code + "model = None\n")
    (run / "config.yaml").write_text(
        CONFIG + "imports: evil\nimport_path: [.]\n_base_: [evil.py]\n"
    )
    return trace


def test_a_config_of_ones_own_takes_only_weights_and_state_from_a_directory(project: Path) -> None:
    hookloop(project, "train", "mine.yaml", "--run-dir", "run")
    trace = plant_code(project / "run")
    output = hookloop(project, "resume", "--config", "mine.yaml", "run", "max_epochs=2")
    assert "completed: run" in output
    assert json.loads((project / "run/summary.json").read_text())["epoch"] == 2
    assert not trace.exists()


def test_a_checkpoint_in_another_store_has_to_be_named(project: Path) -> None:
    hooks = "default_hooks.checkpoint={type: SaveCheckpoint, directory: big}"
    hookloop(project, "train", "mine.yaml", hooks, "--run-dir", "run")
    output = hookloop(project, "resume", "--config", "mine.yaml", "run", code=2)
    assert "is not a store of this run, so it is not opened" in output
    named = f"big/run/{epoch_file(1)}"
    arguments = ("--config", "mine.yaml", "--checkpoint", named, "run", "max_epochs=2")
    assert "completed: run" in hookloop(project, "resume", *arguments)
    assert "completed: run" in hookloop(project, "resume", "run", "max_epochs=3")


def make_hostile(run: Path) -> Path:
    """Make a directory in which whatever is built, imported or unpickled leaves a trace."""
    run.mkdir(parents=True)
    trace = run.parent.parent / "trace"
    command = f"touch {trace}"
    (run / "evil.py").write_text(f"import os\nos.system({command!r})\n")
    (run / "config.yaml").write_text(
        f"_base_: evil.py\nimports: evil\nimport_path: [.]\n"
        f"model: {{type: os.system, command: {command!r}}}\n"
        f"hooks: [{{type: os.system, command: {command!r}}}]\n"
    )
    (run / "summary.json").write_text('{"status": "running", "reason": "\\u001b[2Jgone"}')
    (run / "metrics.jsonl").write_text('{"iter": 1}\n')
    (run / "last_checkpoint").write_text(f"reference://::data:,x/{epoch_file(1)}")
    (run / epoch_file(1)).write_bytes(b"cos\nsystem\n(S'" + command.encode() + b"'\ntR.")
    return trace


def test_what_only_reads_runs_nothing(project: Path) -> None:
    trace = make_hostile(project / "runs" / "theirs")
    hookloop(project, "train", "mine.yaml", "--run-dir", "runs/mine")
    assert "theirs" in hookloop(project, "runs")
    looked = hookloop(project, "train", "mine.yaml", "--resume", "max_epochs=2", code=2)
    assert "a Python file is not read here" in looked
    hookloop(project, "resume", "--config", "mine.yaml", "runs/theirs", code=2)
    theirs = f"runs/theirs/{epoch_file(1)}"
    hookloop(
        project, "validate", "mine.yaml", f"setup.load_from={theirs}", "val_data=net.data", code=2
    )
    assert not trace.exists()
