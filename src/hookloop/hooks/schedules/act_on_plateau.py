"""`ActOnPlateau`: do something when a metric no longer improves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite, nan
from typing import TYPE_CHECKING, Literal, cast

from hookloop.checkpoint.state.shape import Each, Maybe, check_state, is_count, is_number
from hookloop.errors import HookError, nearest
from hookloop.hooks.ending._watch_metric import WatchMetric
from hookloop.runs.policy import Rule, nearest_metric, rule_of

if TYPE_CHECKING:
    from hookloop.engine.run import Run

Mode = Literal["greater", "less", "max", "min"]
PATIENCE = 5
STATISTICS = ("mean", "nanmean", "median", "nanmedian", "min", "max")
_RULES: dict[str, Rule] = {"greater": "greater", "max": "greater", "less": "less", "min": "less"}


class ActOnPlateau(WatchMetric):
    """Call `act`, which a subclass defines, when a metric has stalled.

    It has stalled when ``patience`` values in a row brought no improvement; or, with windows, when
    the mean of the last ``short_term`` values is worse than that of the last ``long_term``. A value
    that is not finite is never an improvement, and a plateau may consist of such values.

    Args:
        metric: What to watch, after each validation: ``"val/loss"``.
        patience: Values without improvement after which to act; then the count begins again. 5 by
            default.
        min_delta: By how much a value must beat the best to be an improvement.
        mode: Whether ``"greater"`` or ``"less"`` is better; inferred from the metric's name by
            default.
        long_term: Length of the long window, instead of ``patience``.
        short_term: Length of the short window.

    Example:
        >>> class HalveRate(ActOnPlateau):
        ...     def act(self, run):
        ...         for group in run.optimizer.param_groups:
        ...             group["lr"] /= 2
        >>> hook = HalveRate("val/loss", patience=2)
        >>> [hook.observe(loss) for loss in (0.9, 0.7, 0.8, 0.75)]
        [False, False, False, True]
    """

    takes_part_in_training = True

    def __init__(
        self,
        metric: str = "val/loss",
        *,
        patience: int | None = None,
        min_delta: float = 0.0,
        mode: Mode | None = None,
        long_term: int | None = None,
        short_term: int | None = None,
    ) -> None:
        super().__init__(metric)
        if type(self).act is ActOnPlateau.act:
            raise HookError(
                f"{type(self).__name__}: define act(self, run), what to do on a plateau."
            )
        if min_delta < 0:
            raise HookError(f"{type(self).__name__}: min_delta must be 0 or more, not {min_delta}.")
        self.rule = _rule_of(self, mode)
        self.min_delta = min_delta
        self.windows = _windows_of(self, patience, long_term, short_term)
        self.patience = PATIENCE if patience is None else patience
        self.best: float | None = None
        self._waited = 0
        self._values: list[float] = []

    def state_dict(self) -> dict[str, object]:
        return {"best": self.best, "waited": self._waited, "values": list(self._values)}

    def describe(self, run: Run) -> Mapping[str, object]:
        return {"metric": self.metric, "best": self.best} | (
            {"waited": f"{self._waited} of {self.patience}"} if self.windows is None else {}
        )

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        check_state(
            state, {"best": Maybe(is_number), "waited": is_count, "values": Each(is_number)}
        )
        self.best = cast("float | None", state["best"])
        self._waited = cast("int", state["waited"])
        self._values = list(cast("Sequence[float]", state["values"]))

    def act(self, run: Run) -> None:
        """Act on the plateau."""
        raise NotImplementedError

    def look(self, run: Run, value: float) -> None:
        if self.observe(value):
            self.act(run)

    def observe(self, value: float) -> bool:
        """Take the next value and return whether the metric has now stalled."""
        improved = self._improves(value)
        if improved:
            self.best = value
        if self.windows is not None:
            long, short = self.windows
            # No more than the long window needs: the list is part of every checkpoint.
            self._values = [*self._values, value][-long:]
            return self._is_worse(_mean(self._values[-short:]), _mean(self._values))
        self._waited = 0 if improved else self._waited + 1
        if self._waited < self.patience:
            return False
        self._waited = 0  # So that it acts again only after as many values without improvement.
        return True

    def _improves(self, value: float) -> bool:
        if not isfinite(value):  # An infinite best could never be beaten.
            return False
        gain = value - (self.best if self.best is not None else value)
        gain = gain if self.rule == "greater" else -gain
        return self.best is None or gain > self.min_delta

    def _is_worse(self, short: float, long: float) -> bool:
        if not isfinite(short):  # None of the recent values is a number.
            return True
        return short < long if self.rule == "greater" else short > long


def _mean(values: Sequence[float]) -> float:
    finite = [value for value in values if isfinite(value)]
    return sum(finite) / len(finite) if finite else nan


def _rule_of(hook: ActOnPlateau, mode: str | None) -> Rule:
    if mode is not None and mode not in _RULES:
        raise HookError(
            f"{type(hook).__name__}: mode='{mode}': write 'greater' or 'less'."
            f"{nearest(str(mode), _RULES)}"
        )
    # A statistic is judged by its variable: less is better for val/loss/max.
    name, _, last = hook.metric.rpartition("/")
    rule = _RULES[mode] if mode else rule_of(name if last in STATISTICS else hook.metric)
    if rule is None:
        hint = nearest_metric(hook.metric)
        raise HookError(
            f"{type(hook).__name__}: the name '{hook.metric}' does not show whether more is "
            f"better.{hint} {'Otherwise give' if hint else 'Give'} mode='greater' or mode='less'."
        )
    return rule


def _windows_of(
    hook: ActOnPlateau, patience: int | None, long: int | None, short: int | None
) -> tuple[int, int] | None:
    kind = type(hook).__name__
    if patience is not None and patience < 1:
        raise HookError(f"{kind}: patience must be at least 1, not {patience}.")
    if long is None and short is None:
        return None
    if long is None or short is None or patience is not None:
        raise HookError(f"{kind}: give either patience, or long_term and short_term together.")
    if not 1 <= short < long:
        raise HookError(f"{kind}: short_term={short} must be less than long_term={long}.")
    return long, short
