"""`RecomputeBatchNorm`: exact statistics for batch norm, instead of a running average."""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils._pytree import tree_map_only

from hookloop.core.hook import Hook
from hookloop.data.batch import size_of
from hookloop.errors import HookError
from hookloop.metrics.moments import Moments

if TYPE_CHECKING:
    from torch.utils.hooks import RemovableHandle

    from hookloop.core.run import Run

_log = logging.getLogger("hookloop")


class RecomputeBatchNorm(Hook):
    """Recompute the statistics of batch norm, with the weights as they are, from recent batches.

    The inputs of the last ``samples`` samples of the epoch are kept and shown to the model once
    more: each layer then has the exact mean and unbiased variance of what it saw. Momentum, other
    buffers, random numbers and the training itself stay as they are; no data is read. Checkpoints
    do not hold the inputs: a resumed run has those since then, and where there are none, as before
    a validation that it makes first, the statistics stay as they are.

    Args:
        samples: How many samples to use, at least; the inputs stay in memory.
        at: ``"epoch"``, when one's training is done, or ``"validation"``, right before it, for
            the weights that are validated: with `AverageWeights` these are the averaged ones.

    Example:
        >>> RecomputeBatchNorm(samples=512, at="validation").samples
        512
    """

    takes_part_in_training = True

    def __init__(
        self, samples: int = 1024, *, at: Literal["epoch", "validation"] = "epoch"
    ) -> None:
        if samples < 1:
            raise HookError(f"RecomputeBatchNorm: samples must be at least 1, not {samples}.")
        if at not in ("epoch", "validation"):
            raise HookError(f"RecomputeBatchNorm: at='{at}': write 'epoch' or 'validation'.")
        self.samples = samples
        self.at = at
        self._handle: RemovableHandle | None = None
        self._window: deque[tuple[int, tuple[object, ...], dict[str, object]]] = deque()
        self._held = 0

    def before_train(self, run: Run) -> None:
        if not _layers(run.model):
            _log.warning("RecomputeBatchNorm: the model has no batch norm in training.")
            return
        self._handle = run.model.register_forward_pre_hook(self._keep, with_kwargs=True)

    def before_train_epoch(self, run: Run) -> None:
        self._window.clear()
        self._held = 0

    def after_train_epoch(self, run: Run) -> None:
        if self.at == "epoch":
            self._recompute(run)

    def before_val(self, run: Run) -> None:
        if self.at == "validation":
            self._recompute(run)

    def after_run(self, run: Run) -> None:
        if self._handle is not None:
            self._handle.remove()
            self._handle = None
        self._window.clear()

    def _keep(self, model: nn.Module, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
        if not (model.training and torch.is_grad_enabled()):
            return
        args, kwargs = tree_map_only(Tensor, Tensor.detach, (args, kwargs))
        self._window.append((size_of([*args, *kwargs.values()]), args, kwargs))
        self._held += self._window[-1][0]
        while self._held - self._window[0][0] >= self.samples:
            self._held -= self._window.popleft()[0]

    def _recompute(self, run: Run) -> None:
        if self._handle is None or not self._window:
            return
        before = {name: one.clone() for name, one in run.model.named_buffers()}
        moments: dict[nn.Module, Moments] = {}

        def observe(layer: nn.Module, args: tuple[Tensor, ...]) -> None:
            moments.setdefault(layer, Moments()).add(args[0])

        handles = [layer.register_forward_pre_hook(observe) for layer in _layers(run.model)]
        devices = [run.device] if run.device.type == "cuda" else []
        try:
            with torch.no_grad(), torch.random.fork_rng(devices):
                for _, args, kwargs in self._window:
                    run.model(*args, **kwargs)
        finally:
            for handle in handles:
                handle.remove()
            with torch.no_grad():
                for name, one in run.model.named_buffers():
                    one.copy_(before[name])
        for layer, seen in moments.items():
            layer.running_mean.copy_(seen.mean)  # type: ignore[operator]
            layer.running_var.copy_(seen.variance())  # type: ignore[operator]


def _layers(model: nn.Module) -> list[_BatchNorm]:
    return [
        layer
        for layer in model.modules()
        if isinstance(layer, _BatchNorm) and layer.training and layer.running_mean is not None
    ]
