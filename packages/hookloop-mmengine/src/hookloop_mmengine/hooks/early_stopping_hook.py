"""``mmengine.hooks.EarlyStoppingHook``: stop the training when a metric stalls."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, cast

from hookloop import Hook as NativeHook
from hookloop import Priority
from hookloop.dialects import Catalogued, internals_of
from hookloop.runs import infer_rule
from hookloop_mmengine.hooks.hook import Hook
from hookloop_mmengine.shared_results import without_phase

if TYPE_CHECKING:
    from hookloop import Run

_log = logging.getLogger("hookloop")
GREATER = (
    "acc", "top", "AR@", "auc", "precision", "mAP", "mDice", "mIoU", "mAcc", "aAcc",
)  # fmt: skip
LESS = ("loss",)


class EarlyStoppingHook(Hook, Catalogued):
    """Stop when a metric has not improved by ``min_delta`` for some validations.

    Args:
        monitor: The metric.
        rule: ``greater`` or ``less`` is better; inferred from the name by default.
        min_delta: The smallest change that counts as an improvement.
        strict: Whether a missing metric is an error and not a warning.
        check_finite: Whether to stop on NaN or infinity.
        patience: How many validations without improvement end the training.
        stopping_threshold: Stop when the metric is beyond it.
    """

    priority = "LOWEST"

    def __init__(
        self,
        monitor: str,
        rule: Literal["greater", "less"] | None = None,
        min_delta: float = 0.1,
        strict: bool = False,
        check_finite: bool = True,
        patience: int = 5,
        stopping_threshold: float | None = None,
    ) -> None:
        found = rule or infer_rule(monitor, GREATER, LESS)
        if found not in ("greater", "less"):
            raise ValueError(
                f"Cannot infer the rule for {monitor}: set rule='greater' or rule='less'."
            )
        self.monitor = monitor
        self.rule = found
        self.min_delta = min_delta
        self.strict = strict
        self.check_finite = check_finite
        self.patience = patience
        self.stopping_threshold = stopping_threshold

    def native_hooks(self) -> list[NativeHook]:
        return [_StopEarly(self)]


class _StopEarly(NativeHook):
    """Do the work natively; unlike MMEngine's hook, it keeps its counters in checkpoints.

    Args:
        settings: The hook with the settings.
    """

    name = "early_stopping_hook"
    priority = Priority.LOWEST
    ends_training = True

    def __init__(self, settings: EarlyStoppingHook) -> None:
        self._settings = settings
        # The worst value, so that the first validation is an improvement over it.
        self.best = -math.inf if settings.rule == "greater" else math.inf
        self.wait = 0

    def state_dict(self) -> dict[str, object]:
        return {"best": self.best, "wait": self.wait}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        self.best, self.wait = cast("float", state["best"]), cast("int", state["wait"])

    def after_val_epoch(self, run: Run, metrics: Mapping[str, float]) -> None:
        monitor = self._settings.monitor
        if monitor not in metrics:
            names = list(without_phase(metrics, "val"))
            text = f"EarlyStoppingHook: '{monitor}' is not in the metrics: {names}."
            if self._settings.strict:
                raise RuntimeError(text)
            _log.warning(text)
            return
        # That of the first rank, so that all stop in the same iteration.
        reason = self._find_reason(internals_of(run).ranks.share(float(metrics[monitor])))
        if reason:
            run.stop(f"EarlyStoppingHook: {reason}", everywhere=True)

    def _find_reason(self, value: float) -> str | None:
        """Take a new value; return the reason to stop, or None."""
        settings = self._settings
        sign = 1 if settings.rule == "greater" else -1
        # First, because every comparison with NaN is False and would count as an improvement.
        if settings.check_finite and not math.isfinite(value):
            return f"{settings.monitor} is {value}"
        threshold = settings.stopping_threshold
        if threshold is not None and sign * (value - threshold) > 0:
            return f"{settings.monitor} has reached {value:.6g}"
        # In MMEngine's order of operations: in floating point, 0.2 + 0.1 is greater than 0.3.
        goal = self.best + sign * settings.min_delta
        if (goal > value) if settings.rule == "greater" else (goal < value):
            self.wait += 1
            if self.wait >= settings.patience:
                return f"{settings.monitor} did not improve in the last {self.wait} validations"
        else:
            self.best, self.wait = value, 0
        return None
