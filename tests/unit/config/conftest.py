"""A small project in a directory of its own, for configs to name things in."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hookloop.config.load import load
from hookloop.config.tree import Config

PROJECT = """
from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Literal

import torch
from torch import nn

from hookloop import Hook

if TYPE_CHECKING:
    from somewhere_unknown import Unknown


class Net(nn.Module):
    def __init__(self, width: int = 2, bias: bool = True) -> None:
        super().__init__()
        self.body = nn.Linear(2, width, bias=bias)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 1)

    def forward(self, inputs):
        return self.head(self.norm(self.body(inputs)))


class Wrapper(nn.Module):
    def __init__(self, inner: nn.Module, options: dict[str, object] | None = None) -> None:
        super().__init__()
        self.inner = inner
        self.options = options


class Pairs(torch.utils.data.Dataset):
    def __init__(self, count: int = 8, scale: float = 1.0) -> None:
        self.inputs = scale * torch.randn(count, 2)

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, index):
        return self.inputs[index], self.inputs[index].sum(0, keepdim=True)


def batches(count: int = 4):
    return [(torch.randn(2, 2), torch.randn(2, 1)) for _ in range(count)]


def difference(output, targets):
    return (output - targets).abs().mean()


def scaled(output, targets, scale: float):
    return scale * difference(output, targets)


def make_loss(scale: float):
    return lambda output, targets: scale * difference(output, targets)


def step(run, batch):
    return run.model(batch[0]).sum()


class Watch(Hook):
    def __init__(
        self,
        metric: str,
        mode: Literal["min", "max"] = "min",
        patience: int = 3,
        unknown: Unknown | None = None,
    ) -> None:
        self.metric = metric
        self.mode = mode
        self.patience = patience

    def after_train_iter(self, run): ...


class Plain(Hook):
    def after_train_iter(self, run): ...


class Picky(Hook):
    def __init__(self, value: int) -> None:
        raise RuntimeError("no such value")


class Nosy(Hook):
    def __init__(self, model, dataset, output_dir, extra: int = 1) -> None:
        self.model = model
        self.dataset = dataset
        self.output_dir = output_dir

    def after_train_iter(self, run): ...


class Own(Hook):
    def __init__(self, every: int | str) -> None:
        self.given = every

    def after_train_iter(self, run): ...


class Calls(Hook):
    def __init__(self, function: Callable[[int], int]) -> None:
        self.function = function

    def after_train_iter(self, run): ...


def double(value: int) -> int:
    return 2 * value
"""

Write = Callable[..., Config]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Make the project and its directory the working one; its modules are forgotten afterwards."""
    before = set(sys.modules)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "proj.py").write_text(PROJECT)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def write(project: Path) -> Write:
    """Write a config into the project and load it."""

    def write_and_load(text: str, *overrides: str, name: str = "a.yaml") -> Config:
        (project / name).write_text(text)
        return load(name, overrides)

    return write_and_load
