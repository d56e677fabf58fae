"""``mmengine.hooks.EarlyStoppingHook``: an end to the training when a metric stalls."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, cast

from hookloop.core.hook import Hook as NativeHook
from hookloop.core.hook import Priority
from hookloop.dialects.adapter import Catalogued
from hookloop.dialects.mmengine.hooks.hook import Hook
from hookloop.metrics.results import without_phase
from hookloop.metrics.rule import infer_rule

if TYPE_CHECKING:
    from hookloop.core.run import Run

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
        min_delta: By how much a value must beat the best.
        strict: Whether a missing metric is an error, or a warning.
        check_finite: Whether to stop on NaN or infinity.
        patience: Validations without improvement until the end.
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
    """Does the work; unlike MMEngine's, it remembers its counters over a resume."""

    name = "early_stopping_hook"
    priority = Priority.LOWEST
    ends_training = True

    def __init__(self, said: EarlyStoppingHook) -> None:
        self._said = said
        self.best = -math.inf if said.rule == "greater" else math.inf
        self.wait = 0

    def state_dict(self) -> dict[str, object]:
        return {"best": self.best, "wait": self.wait}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        self.best, self.wait = cast("float", state["best"]), cast("int", state["wait"])

    def after_val_epoch(self, run: Run, metrics: Mapping[str, float]) -> None:
        said = self._said
        if said.monitor not in metrics:
            names = list(without_phase(metrics, "val"))
            text = f"EarlyStoppingHook: '{said.monitor}' is not in the metrics: {names}."
            if said.strict:
                raise RuntimeError(text)
            _log.warning(text)
            return
        reason = self._look(float(metrics[said.monitor]))
        if reason:
            run.stop(f"EarlyStoppingHook: {reason}")

    def _look(self, value: float) -> str | None:
        said = self._said
        sign = 1 if said.rule == "greater" else -1
        if said.check_finite and not math.isfinite(value):
            return f"{said.monitor} is {value}"
        if said.stopping_threshold is not None and sign * (value - said.stopping_threshold) > 0:
            return f"{said.monitor} has reached {value:.6g}"
        # Written as MMEngine computes it, because the last bit decides: 0.1 + 0.1 > 0.3 - 0.1.
        goal = self.best + sign * said.min_delta
        if (goal > value) if said.rule == "greater" else (goal < value):
            self.wait += 1
            if self.wait >= said.patience:
                return f"{said.monitor} did not improve in the last {self.wait} validations"
        else:
            self.best, self.wait = value, 0
        return None
