"""A project whose configs and scripts are the examples of a document, run by the command line."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent
from unittest.mock import patch

from click.testing import CliRunner, Result

from hookloop.cli.main import cli

# What the documents leave out: a model, data and an optimizer.
PARTS = '''
import torch
from torch import nn
from torch.utils.data import DataLoader


class Net(nn.Module):
    """Batches have named sources, outputs have names."""

    def __init__(self, start=None):
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(4, 3)
        if start is not None:
            nn.init.constant_(self.layer.weight, float(start))

    def forward(self, images, labels):
        scores = self.layer(images)
        loss = nn.functional.cross_entropy(scores, labels)
        return {"loss": loss, "prediction": scores.argmax(1)}


def stream(samples=16, seed=0, batch_size=8):
    generator = torch.Generator().manual_seed(seed)
    images = torch.randn(samples, 4, generator=generator)
    pairs = [{"images": image, "labels": image[:3].argmax()} for image in images]
    return DataLoader(pairs, batch_size=batch_size)


def accuracy(output, batch):
    return 1 - output["loss"].clamp(max=1)
'''
YAML = """
seed: 0
model: parts.Net
train_data: parts.stream
val_data: {type: parts.stream, seed: 1}
optimizer: {type: SGD, lr: 0.1}
"""
PYTHON = """
seed = 0
model = dict(type='parts.Net')
train_data = dict(type='parts.stream')
val_data = dict(type='parts.stream', seed=1)
optimizer = dict(type='SGD', lr=0.1)
"""


def write(files: Mapping[str, str]) -> None:
    """Write the files of a project into the working directory."""
    for name, text in {"parts.py": PARTS, **files}.items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")


def hookloop(*arguments: str) -> Result:
    """Run a command in the working directory; its modules are forgotten afterwards."""
    # As in a process of its own: pytest's handlers look like a program that has set up logging.
    with own_modules(Path.cwd()), patch("logging.root.handlers", []):
        return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def train(*arguments: str, run: str = "run") -> str:
    """Train; return what was printed."""
    result = hookloop("train", *arguments, "--run-dir", run)
    assert result.exit_code == 0, result.output
    return result.output


@contextmanager
def own_modules(home: Path) -> Iterator[None]:
    """Forget the modules of a project: the next one has others under the same names."""
    before, path = set(sys.modules), list(sys.path)
    try:
        yield
    finally:
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None)
            if file is None or Path(file).is_relative_to(home):
                del sys.modules[name]
        sys.path[:] = path
