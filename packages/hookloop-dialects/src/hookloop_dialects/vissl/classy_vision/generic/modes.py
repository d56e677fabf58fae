"""Models and optimizers of ``classy_vision.generic.util``: modes, parameters, random seeds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm


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


def is_on_gpu(model: nn.Module) -> bool:
    """Return whether all parameters are on CUDA devices."""
    return all(value.is_cuda for value in model.parameters())


def split_batchnorm_params(model: nn.Module) -> tuple[list[Tensor], list[Tensor]]:
    """Return the trained parameters of batch norm layers, and all others."""
    norms: list[Tensor] = []
    others: list[Tensor] = []
    for module in model.modules():
        found = norms if isinstance(module, _BatchNorm) and is_leaf(module) else others
        found += [value for value in module.parameters(recurse=False) if value.requires_grad]
    return norms, others


def master_params(optimizer: Any) -> Iterator[Tensor]:  # noqa: ANN401 - an optimizer of any kind
    """Yield the parameters of an optimizer."""
    for group in optimizer.param_groups:
        yield from group["params"]


@contextmanager
def torch_seed(seed: int | None) -> Iterator[None]:
    """Draw torch's random numbers from a seed for a ``with`` block; None changes nothing."""
    before = torch.get_rng_state()
    if seed is not None:
        torch.manual_seed(seed)
    try:
        yield
    finally:
        if seed is not None:
            torch.set_rng_state(before)


@contextmanager
def numpy_seed(seed: int | None, *addl_seeds: int) -> Iterator[None]:
    """Draw NumPy's random numbers from a seed for a ``with`` block; None changes nothing."""
    before = np.random.get_state()
    if seed is not None:
        own = int(hash((seed, *addl_seeds)) % 1e6) if addl_seeds else seed
        np.random.seed(own)
    try:
        yield
    finally:
        if seed is not None:
            np.random.set_state(before)


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
