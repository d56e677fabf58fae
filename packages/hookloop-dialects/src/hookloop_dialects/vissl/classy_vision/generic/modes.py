"""Models and optimizers of ``classy_vision.generic.util``: modes, parameters, random seeds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import torch
from torch import nn


@contextmanager
def _mode(model: nn.Module, train_mode: bool) -> Iterator[None]:
    before = {module: module.training for module in model.modules()}
    model.train(train_mode)
    try:
        yield
    finally:  # Module by module: a model may have some of them frozen.
        for module, was_training in before.items():
            module.training = was_training


def train_model(model: nn.Module) -> Any:  # noqa: ANN401 - a context
    """Put a model in training mode for a ``with`` block."""
    return _mode(model, True)


def eval_model(model: nn.Module) -> Any:  # noqa: ANN401 - a context
    """Put a model in evaluation mode for a ``with`` block."""
    return _mode(model, False)


def is_leaf(module: nn.Module) -> bool:
    """Return whether a module has no children."""
    return not any(True for _ in module.children())


class Timer:
    """Measure a ``with`` block: ``timer.elapsed_time`` has its seconds."""

    def __init__(self) -> None:
        self.start = 0.0
        self.elapsed_time = 0.0

    def __enter__(self) -> Self:
        self.start = time.perf_counter()
        return self

    def __exit__(self, *error: object) -> None:
        self.elapsed_time = time.perf_counter() - self.start


def get_torch_version() -> list[int]:
    """Return torch's version as [major, minor]."""
    return [int(part) for part in torch.__version__.split(".")[:2]]


def log_class_usage(component_type: str, klass: type) -> None:
    """Do nothing: no use is reported to anybody."""
