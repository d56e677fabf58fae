"""`StopOnNaN`: ends a training whose numbers are no longer finite, and says where it began."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING, Literal, NamedTuple

import torch
from torch import Tensor

from hookloop.core.hook import Hook, interval_of
from hookloop.data.portable import named_tensors, write_portable
from hookloop.errors import HookError
from hookloop.every import Every
from hookloop.metrics.finite import Finite

if TYPE_CHECKING:
    from hookloop.core.run import Run

PHASES = ("train", "val", "test")


class Place(NamedTuple):
    """Where something was seen; an index counts from 0, an iteration from 1."""

    iter: int
    index_in_epoch: int
    microbatch: int
    stream: str


class StopOnNaN(Hook):
    """Look for NaN and infinity in the loss, outputs and gradients, and name the first.

    What was seen stays on the device and is read once per interval, at the end, and before every
    checkpoint, so that none is written with damaged weights. With ``every=1`` the run ends before
    the optimizer has touched the weights.

    Args:
        loss: Whether to look at the loss of every batch.
        outputs: Whether to look at all tensors of the output.
        gradients: Whether to look at the gradients, in the iterations of the interval.
        every: Interval at which the findings are read, in iterations or time.
        action: ``"raise"`` fails with a `FloatingPointError`, ``"stop"`` ends the run in order.
        dump: Whether to write batch, output and gradients into the run directory, as
            ``nan_iter_8.pt``. The batches of an interval then stay in memory until it is read.
        phases: Where to look: ``"train"``, ``"val"``, ``"test"``.

    Example:
        >>> StopOnNaN(gradients=True, every=1).every
        Every(count=1, unit='iters')
    """

    writes = ("stop",)

    def __init__(
        self,
        *,
        loss: bool = True,
        outputs: bool = False,
        gradients: bool = False,
        every: Every | int | str = 10,
        action: Literal["raise", "stop"] = "raise",
        dump: bool = False,
        phases: Sequence[str] = ("train",),
    ) -> None:
        if not (loss or outputs or gradients):
            raise HookError("StopOnNaN looks at nothing: give loss, outputs or gradients.")
        if action not in ("raise", "stop"):
            raise HookError(f"StopOnNaN: action='{action}': write 'raise' or 'stop'.")
        if not phases or set(phases) - set(PHASES):
            raise HookError(f"StopOnNaN: phases={list(phases)}: write some of {', '.join(PHASES)}.")
        self.loss = loss
        self.outputs = outputs
        self.gradients = gradients
        self.every = interval_of(self, every)
        self.action = action
        self.dump = dump
        self.phases = tuple(phases)
        self._at_once = self.every == Every(1, "iters")
        self._seen = Finite[tuple[str, Place, dict[str, object]]]()
        self._place = Place(0, 0, 0, "")
        self._parts: dict[str, object] = {}

    def after_loss(self, run: Run) -> None:
        if run.phase not in self.phases:
            return
        iter, index = run.progress.iter + (run.phase == "train"), run.progress.iter_in_epoch
        microbatch = self._place.microbatch + 1 if self._place.iter == iter else 0
        self._place = Place(iter, index, microbatch, run.stream)
        if self.dump:
            outputs = {name: one.detach() for name, one in named_tensors(run.output, "output")}
            self._parts = {"batch": run.batch, "outputs": outputs, "loss": run.loss}
        if self.loss and run.loss is not None:
            self._keep("the loss", run.loss.detach())
        if self.outputs:
            for name, tensor in named_tensors(run.output, "output"):
                if tensor.is_floating_point() and tensor.numel():
                    self._keep(name, tensor.detach().abs().max())
        if self._at_once:
            self._check(run)

    def before_update(self, run: Run) -> None:
        if not self.gradients or "train" not in self.phases:
            return
        found = {n: p.grad for n, p in run.model.named_parameters() if p.grad is not None}
        # The largest number of each: NaN and infinity pass through, and nothing can overflow.
        for name, norm in zip(found, torch._foreach_norm(list(found.values()), inf), strict=True):
            self._keep(f"the gradient of '{name}'", norm)
        if self._at_once:
            self._check(run)

    def after_train_iter(self, run: Run) -> None:
        self._check(run)

    def before_save_checkpoint(self, run: Run, checkpoint: object) -> None:
        self._check(run)

    after_val = after_test = after_train = after_train_iter

    def _keep(self, name: str, value: Tensor) -> None:
        self._seen.add((name, self._place, self._parts), value)

    def _check(self, run: Run) -> None:
        fault = self._seen.first_fault()
        if fault is None:
            return
        (name, place, parts), value = fault
        message = (
            f"{name} is {value} in iteration {place.iter} ({place.stream} batch "
            f"{place.index_in_epoch} of the epoch, microbatch {place.microbatch}); {_damage(run)}"
        )
        if self.dump and run.world.is_main:
            path = run.dir / f"nan_iter_{place.iter}.pt"
            gradients = {n: p.grad for n, p in run.model.named_parameters() if p.grad is not None}
            found = {"found": message, **place._asdict(), **parts, "gradients": gradients}
            write_portable(path, found)
            message += f"; see '{path}'"
        if self.action == "raise":
            raise FloatingPointError(message)
        run.stop(message)


def _damage(run: Run) -> str:
    """Tell whether the weights can still be used."""
    for name, parameter in run.model.named_parameters():
        if not parameter.isfinite().all():
            return f"the weights are damaged, beginning with '{name}'"
    return "the weights are still finite"
