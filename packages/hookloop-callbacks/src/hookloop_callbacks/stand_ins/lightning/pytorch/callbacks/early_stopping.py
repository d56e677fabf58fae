"""`EarlyStopping`: end the training when a metric does not improve any more."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from hookloop.errors import HookError
from hookloop_callbacks.stand_ins.lightning.pytorch.callbacks.callback import Callback


class EarlyStopping(Callback):
    """Stops the training when a metric has not improved for some checks.

    Args:
        monitor: The metric, for example ``val_loss``.
        min_delta: What counts as an improvement.
        patience: Checks without improvement before the training ends.
        verbose: Whether to report each improvement.
        mode: ``min`` or ``max``.
        strict: Whether a missing metric is an error.
        check_finite: Whether a number that is not finite ends the training.
        stopping_threshold: A value at which the training ends at once.
        divergence_threshold: A value that is bad enough to end it at once.
        check_on_train_epoch_end: Whether to look after epochs; by default after validations.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the arguments are Lightning's
        self,
        monitor: str,
        min_delta: float = 0.0,
        patience: int = 3,
        verbose: bool = False,
        mode: str = "min",
        strict: bool = True,
        check_finite: bool = True,
        stopping_threshold: float | None = None,
        divergence_threshold: float | None = None,
        check_on_train_epoch_end: bool | None = None,
    ) -> None:
        if mode not in ("min", "max"):
            raise HookError(f"EarlyStopping(mode={mode!r}): write 'min' or 'max'.")
        self.monitor, self.mode = monitor, mode
        self.min_delta, self.patience = abs(min_delta), patience
        self.verbose, self.strict, self.check_finite = verbose, strict, check_finite
        self.stopping_threshold = stopping_threshold
        self.divergence_threshold = divergence_threshold
        self.check_on_train_epoch_end = check_on_train_epoch_end
        self.wait_count = self.stopped_epoch = 0
        self.best_score = math.inf if mode == "min" else -math.inf

    def state_dict(self) -> dict[str, Any]:
        """Return what it has seen so far."""
        names = ("wait_count", "stopped_epoch", "best_score", "patience")
        return {name: getattr(self, name) for name in names}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue from there."""
        for name, value in state_dict.items():
            setattr(self, name, value)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ANN401
        """Look at the metric if there is no validation."""
        if self.check_on_train_epoch_end or not (
            trainer.num_val_batches or self.check_on_train_epoch_end is False
        ):
            self._check(trainer)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ANN401
        """Look at the metric."""
        if not self.check_on_train_epoch_end and trainer.state.fn == "fit":
            self._check(trainer)

    def _check(self, trainer: Any) -> None:  # noqa: ANN401
        found = trainer.callback_metrics.get(self.monitor)
        if found is None:
            if not self.strict:
                return
            raise HookError(
                f"EarlyStopping looks at '{self.monitor}', which is not there. There are: "
                f"{', '.join(trainer.callback_metrics)}."
            )
        value = float(found)
        if self._ends_at_once(value) or not self._improves(value):
            self.stopped_epoch = trainer.current_epoch
            trainer.should_stop = True

    def _ends_at_once(self, value: float) -> bool:
        is_bad = self.check_finite and not math.isfinite(value)
        for limit, is_beyond in (
            (self.stopping_threshold, self._is_better),
            (self.divergence_threshold, lambda v, limit: self._is_better(limit, v)),
        ):
            is_bad = is_bad or (limit is not None and is_beyond(value, limit))
        return is_bad

    def _is_better(self, value: float, other: float) -> bool:
        return value < other if self.mode == "min" else value > other

    def _improves(self, value: float) -> bool:
        """Count the check; return whether to continue."""
        margin = self.min_delta if self.mode == "min" else -self.min_delta
        if self._is_better(value + margin, self.best_score):
            self.best_score, self.wait_count = value, 0
            return True
        self.wait_count += 1
        return self.wait_count < self.patience
