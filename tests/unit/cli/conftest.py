"""A small project in the working directory, for verbs that run in this process."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests import warm

from hookloop.cli.main import cli

MODULE = """
import torch


def batches(count: int = 4, seed: int = 0):
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(count, 8, 2, generator=generator)
    return [(batch, batch.sum(1, keepdim=True)) for batch in inputs]
"""

CONFIG = """\
seed: 0
max_epochs: 2
model: {type: torch.nn.Linear, in_features: 2, out_features: 1}
train_data: cli_project.batches
val_data: {type: cli_project.batches, seed: 1}
data: {test: {type: cli_project.batches, seed: 2}}
loss: mse_loss
optimizer: {type: SGD, lr: 0.1}
default_hooks: {console: null}
"""

Invoke = Callable[..., Result]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory with ``config.yaml``; its module is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "cli_project.py").write_text(MODULE)
    (tmp_path / "config.yaml").write_text(CONFIG)
    yield tmp_path
    sys.modules.pop("cli_project", None)


@pytest.fixture
def warm_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start the processes that a command starts from one that has imported torch."""
    monkeypatch.setattr(sys, "executable", warm.python())


@pytest.fixture
def invoke(project: Path) -> Invoke:
    """Run the command line in this process."""

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(cli, list(arguments))

    return run
