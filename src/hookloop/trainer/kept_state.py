"""The state of a run before a trial, kept in memory: what a trial changes is set back exactly.

Everything is set back in place. Optimizers, schedules and hooks hold the model's own tensors, which
therefore stay the same objects.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from hookloop.core.plan import Plan
from hookloop.data.randomness import Randomness
from hookloop.metrics.store import MetricStore
from hookloop.requests import Requests
from hookloop.writers.outbox import Outbox

if TYPE_CHECKING:
    from hookloop.core.run import Run

# What an update, or a step of the user's, may set on a run.
_ATTRIBUTES = (
    "plan", "metrics", "outbox", "requests", "wishes", "batch", "output", "loss", "place", "phase",
    "stream",
)  # fmt: skip


@contextmanager
def without_trace(run: Run) -> Iterator[None]:
    """Let updates be made that leave the run as it was, to the last bit; no hook acts meanwhile.

    Weights, buffers, gradients, optimizers, the loss scaler, the position in the training data,
    counters, metrics and random numbers are set back; schedules must not step. On many ranks, all
    of them do this together.
    """
    kept = {name: getattr(run, name) for name in _ATTRIBUTES}
    progress = asdict(run.progress)
    parts = _Parts(run)
    run.plan = Plan([], run.plan.points)
    run.metrics, run.outbox = MetricStore(), Outbox()
    run.requests, run.wishes = Requests(), Requests()
    run.phase = run.stream = "train"
    try:
        yield
    finally:
        parts.restore(run)
        for name, value in progress.items():
            setattr(run.progress, name, value)
        for name, value in kept.items():
            setattr(run, name, value)


class _Parts:
    """Copies of all that an update changes, at one moment."""

    def __init__(self, run: Run) -> None:
        source = run.train_data
        self._generators = source.generators() if source is not None else []
        # First: reading the other states must not draw from them.
        self._randomness = Randomness.now(self._generators)
        roots = [run.model, run.loss_function]
        self._modules = [
            module for root in roots if isinstance(root, nn.Module) for module in root.modules()
        ]
        self._modes = [module.training for module in self._modules]
        self._extras = [
            (module, copy.deepcopy(module.get_extra_state()))
            for module in self._modules
            if type(module).get_extra_state is not nn.Module.get_extra_state
        ]
        # With their objects: a module may replace a buffer, instead of changing it in place.
        self._buffers = [
            (module, name, buffer, buffer.detach().clone())
            for module in self._modules
            for name, buffer in module._buffers.items()
            if buffer is not None
        ]
        self._parameters = [
            (parameter, parameter.detach().clone(), _copied(parameter.grad))
            for parameter in _parameters_of(run, self._modules)
        ]
        self._optimizers = [
            (one, one.param_groups, copy.deepcopy(one.state_dict()))
            for one in run.optimizers.values()
        ]
        self._scaler = copy.deepcopy(run.scaler.state_dict()) if run.scaler is not None else {}
        self._data = copy.deepcopy(source.state_dict()) if source is not None else {}

    def restore(self, run: Run) -> None:
        """Set everything back."""
        with torch.no_grad():
            for parameter, value, gradient in self._parameters:
                parameter.copy_(value)
                parameter.grad = gradient
            for module, name, buffer, value in self._buffers:
                buffer.copy_(value)
                module._buffers[name] = buffer
        for module, extra in self._extras:
            module.set_extra_state(extra)
        for module, is_training in zip(self._modules, self._modes, strict=True):
            module.training = is_training
        for optimizer, groups, state in self._optimizers:
            optimizer.load_state_dict(state)
            # It makes new groups, and a schedule or a hook may hold the old ones.
            for group, loaded in zip(groups, optimizer.param_groups, strict=True):
                group.clear()
                group.update(loaded)
            optimizer.param_groups = groups
        if run.scaler is not None:
            run.scaler.load_state_dict(self._scaler)
        if run.train_data is not None:
            run.train_data.close()  # Workers are ahead of the position.
            run.train_data.load_state_dict(self._data)
        self._randomness.restore(self._generators)  # Last: the others may draw.


def _parameters_of(run: Run, modules: list[nn.Module]) -> list[Tensor]:
    """List the parameters of modules and of optimizers, each once."""
    found = {
        id(parameter): parameter
        for module in modules
        for parameter in module.parameters(recurse=False)
    }
    for optimizer in run.optimizers.values():
        for group in optimizer.param_groups:
            found |= {id(parameter): parameter for parameter in group["params"]}
    return list(found.values())


def _copied(gradient: Tensor | None) -> Tensor | None:
    return None if gradient is None else gradient.detach().clone()
