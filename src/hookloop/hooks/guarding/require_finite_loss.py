"""`RequireFiniteLoss`: end a training whose loss is NaN, before it saves damaged weights."""

from __future__ import annotations

import logging
from math import isfinite
from typing import TYPE_CHECKING

from hookloop.engine.hook import Hook, Priority
from hookloop.every import Every
from hookloop.hooks._intervals import interval_of
from hookloop.hooks.guarding._guarding import first_damaged, is_dropping

if TYPE_CHECKING:
    from hookloop.engine.run import Run
    from hookloop.requests import Rewind

_log = logging.getLogger("hookloop")

ADVICE = (
    "Try a smaller learning rate or a warm-up, clip_norm=1.0, bf16 or fp32 instead of fp16, or "
    "look for NaN in the data. The existing checkpoints were made before this: a resume continues "
    "from the newest. StopOnNaN(every=1, dump=True) stops in the first bad iteration and writes "
    "its batch; SkipBadUpdates drops single bad updates; default_hooks={'nan': None} continues "
    "training regardless."
)


class RequireFiniteLoss(Hook):
    """Fail with a `FloatingPointError` when the training loss stays NaN or infinite.

    It is one of the default hooks. The losses are checked when they are read anyway: once per
    interval, at the end of an epoch and of the training, and before every checkpoint. A checkpoint
    also needs finite trainable weights, so damaged weights never replace good ones. A single loss
    that is not finite is only a warning if the weights still are, as with the loss scaling of half
    precision; with `SkipBadUpdates`, so is any number of them. Validation is not checked.

    Args:
        every: How often to read the losses, in iterations or time.

    Example:
        >>> str(RequireFiniteLoss().every)
        '50 iters'
    """

    priority = Priority.LOW
    guards_by = "failing"
    takes_part_in_training = True

    def __init__(self, every: Every | int | str = 50) -> None:
        self.every = interval_of(self, every)
        self._checked_at = 0
        self._seen: dict[str, int] = {}
        self._is_warned = False

    def after_rewind(self, run: Run, rewind: Rewind) -> None:
        self.before_train(run)

    def before_train(self, run: Run) -> None:
        # A resumed run has losses of the part before, which were checked then.
        self._checked_at = run.progress.iter
        self._seen = run.metrics.counts(_losses(run))

    def after_train_iter(self, run: Run) -> None:
        self._check(run)

    def after_train_epoch(self, run: Run) -> None:
        self._check(run)

    def after_train(self, run: Run) -> None:
        self._check(run)

    def before_save_checkpoint(self, run: Run, checkpoint: object) -> None:
        if run.outcome.status == "running":  # A failed run may save what it failed with.
            self._check(run)
            # The loss was computed before the last update, which may have damaged the weights.
            if damaged := first_damaged(run.model):
                raise FloatingPointError(
                    f"the weights are not finite after iteration {run.progress.iter}, starting "
                    f"with '{damaged}', so no checkpoint is written. {ADVICE}"
                )

    def _check(self, run: Run) -> None:
        """Read the losses since the last check; raise if the last of them are not finite."""
        if run._internals.requests.rewind is not None:  # The run goes back to before these losses.
            return
        since = run.progress.iter - self._checked_at
        self._checked_at = run.progress.iter
        found = run.metrics.values_since(self._seen, _losses(run))
        self._seen = run.metrics.counts(_losses(run))
        for name, values in found.items():
            bad = [index for index, value in enumerate(values) if not isfinite(value)]
            if not bad:
                continue
            where = _iteration(run.progress.iter, since, len(values), bad[0])
            message = f"{name} is {values[bad[0]]} {where} ({len(bad)} of the last {len(values)})"
            damaged = first_damaged(run.model)
            if damaged is not None:
                raise FloatingPointError(
                    f"{message}; the weights are damaged, starting with '{damaged}'. {ADVICE}"
                )
            # Two in a row: a single one may be a step that loss scaling has skipped.
            # A hook that drops bad updates has limits of its own, which count here.
            if not (is_dropping(run) or any(map(isfinite, values[-2:]))) and len(values) > 1:
                raise FloatingPointError(f"{message}; the weights are still finite. {ADVICE}")
            if not self._is_warned:
                self._is_warned = True
                _log.warning("%s; the weights are finite, the training continues.", message)


def _losses(run: Run) -> list[str]:
    """Return the names of the losses that updates are made from."""
    return ["train/loss", *(f"train/{name}_loss" for name in run.optimizers)]


def _iteration(done: int, iterations: int, values: int, index: int) -> str:
    """Return the iteration of a value, as text."""
    each, rest = divmod(values, max(1, iterations))
    # The iteration is only known if each has the same number of values.
    if rest or not each:
        return f"within the last {iterations} iterations before {done + 1}"
    return f"in iteration {done - (values - 1 - index) // each}"
