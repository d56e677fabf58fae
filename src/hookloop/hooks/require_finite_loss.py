"""`RequireFiniteLoss`: no training goes on with NaN, and no checkpoint is written of one."""

from __future__ import annotations

import logging
from math import inf, isfinite
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from hookloop.core.hook import Hook, Priority, interval_of
from hookloop.every import Every

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hookloop.core.run import Run

_log = logging.getLogger("hookloop")

ADVICE = (
    "Try a smaller learning rate or a warm-up, clip_norm=1.0, bf16 or fp32 instead of fp16, or "
    "look for NaN in the data. The checkpoints that are there were made before: a resume continues "
    "from the newest. StopOnNaN(every=1, dump=True) stops in the very iteration, with its batch; "
    "default_hooks={'nan': None} trains on regardless."
)


class RequireFiniteLoss(Hook):
    """Fail with a `FloatingPointError` when the training loss has become NaN or infinite for good.

    It is one of the default hooks. The losses are looked at when they are read anyway: once per
    interval, at the end of an epoch and of the training, and before every checkpoint, for which the
    trainable weights must be finite too: none replaces a good one with damaged weights. A single
    loss that is not finite while the weights still are, as with the loss scaling of half
    precision, is a warning. Validation is not looked at.

    Args:
        every: Interval, in iterations or time.

    Example:
        >>> str(RequireFiniteLoss().every)
        '50 iters'
    """

    priority = Priority.LOW
    takes_part_in_training = True

    def __init__(self, every: Every | int | str = 50) -> None:
        self.every = interval_of(self, every)
        self._looked_at = 0
        self._seen: dict[str, int] = {}
        self._is_warned = False

    def before_train(self, run: Run) -> None:
        self._looked_at = run.progress.iter
        self._seen = run.metrics.counts(_losses(run))

    def after_train_iter(self, run: Run) -> None:
        self._look(run)

    def after_train_epoch(self, run: Run) -> None:
        self._look(run)

    def after_train(self, run: Run) -> None:
        self._look(run)

    def before_save_checkpoint(self, run: Run, checkpoint: object) -> None:
        if run.outcome.status == "running":  # A failed run may save what it failed with.
            self._look(run)
            if damaged := first_damaged(run.model):
                raise FloatingPointError(
                    f"the weights are not finite after iteration {run.progress.iter}, beginning "
                    f"with '{damaged}', so no checkpoint is written. {ADVICE}"
                )

    def _look(self, run: Run) -> None:
        """Read the losses since the last look; raise if the last of them are not finite."""
        since = run.progress.iter - self._looked_at
        self._looked_at = run.progress.iter
        found = run.metrics.values_since(self._seen, _losses(run))
        self._seen = run.metrics.counts(_losses(run))
        for name, values in found.items():
            bad = [place for place, value in enumerate(values) if not isfinite(value)]
            if not bad:
                continue
            where = _iteration(run.progress.iter, since, len(values), bad[0])
            message = f"{name} is {values[bad[0]]} {where} ({len(bad)} of the last {len(values)})"
            damaged = first_damaged(run.model)
            if damaged is not None:
                raise FloatingPointError(
                    f"{message}; the weights are damaged, beginning with '{damaged}'. {ADVICE}"
                )
            if not any(map(isfinite, values[-2:])) and len(values) > 1:
                raise FloatingPointError(f"{message}; the weights are still finite. {ADVICE}")
            if not self._is_warned:
                self._is_warned = True
                _log.warning("%s; the weights are finite, the training continues.", message)


def _losses(run: Run) -> list[str]:
    """Name the losses that updates are made from."""
    return ["train/loss", *(f"train/{name}_loss" for name in run.optimizers)]


def _iteration(done: int, iterations: int, values: int, place: int) -> str:
    """Name the iteration of a value, if there are as many in each."""
    each, rest = divmod(values, max(1, iterations))
    if rest or not each:
        return f"within the last {iterations} iterations before {done + 1}"
    return f"in iteration {done - (values - 1 - place) // each}"


def _are_finite(tensors: Sequence[Tensor]) -> bool:
    """Return whether all numbers are finite; one number per device is read."""
    by_device: dict[torch.device, list[Tensor]] = {}
    for one in tensors:
        by_device.setdefault(one.device, []).append(one)
    for some in by_device.values():
        # The largest number of each: NaN and infinity pass through, and nothing can overflow.
        largest = [norm.float() for norm in torch._foreach_norm(some, inf)]
        if not torch.stack(largest).isfinite().all():
            return False
    return True


def first_damaged(model: torch.nn.Module) -> str | None:
    """Name the first trainable parameter that holds NaN or infinity, after one read for all."""
    found = {
        name: one.detach()
        for name, one in model.named_parameters()
        if one.requires_grad and one.numel()
    }
    if _are_finite(list(found.values())):
        return None
    return next((name for name, one in found.items() if not one.isfinite().all()), None)
