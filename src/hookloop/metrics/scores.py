"""The best validation so far, by one watched metric or several."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import TypedDict, cast

from hookloop.errors import HookError, MetricError, nearest
from hookloop.metrics.results import is_left_out
from hookloop.runs.policy import Rule, is_better, nearest_metric, rule_of


class BestScores:
    """The best values of each watched metric; a tie keeps the older, and NaN never wins.

    Args:
        best: A metric, several, or ``"auto"`` for the first metric of a validation that is not a
            loss and whose name shows its rule, or else the first loss.
        rule: ``"greater"`` or ``"less"`` is better: one for all, one per metric, or None to infer.
        greater_keys: Parts of the names of metrics that are better when greater.
        less_keys: Parts of the names of metrics that are better when less.
        keep: How many values of a metric count as the best; None for all.

    >>> scores = BestScores("accuracy", None, ["acc"], ["loss"])
    >>> [scores.update({"accuracy": value}) for value in (0.5, float("nan"), 0.5, 0.6)]
    [['accuracy'], [], [], ['accuracy']]
    """

    def __init__(
        self,
        best: str | Sequence[str] | None,
        rule: Rule | Sequence[Rule] | None,
        greater_keys: Sequence[str],
        less_keys: Sequence[str],
        keep: int | None = 1,
    ) -> None:
        names = [best] if isinstance(best, str) else list(best or ())
        if "auto" in names and len(names) > 1:
            raise HookError("best='auto' must stand alone: it chooses one metric.")
        if len(set(names)) != len(names):
            raise HookError(f"best names a metric twice: {', '.join(names)}.")
        rules = [rule] * max(1, len(names)) if isinstance(rule, str) else list(rule or ())
        if rules and len(rules) != max(1, len(names)):
            raise HookError(f"rule has {len(rules)} entries for {len(names)} metrics.")
        self._auto = names == ["auto"]
        self._rules = rules
        self._keys = (tuple(greater_keys), tuple(less_keys))
        self.metrics = [] if self._auto else [name.removeprefix("val/") for name in names]
        self._keep = keep
        self._values: dict[str, list[float]] = {}  # The best first, and what they displaced.
        # A missing rule is an error now, and not after the first validation of a long epoch.
        for index, name in enumerate(self.metrics):
            self._rule(index, name)

    @property
    def watches(self) -> bool:
        """Whether there is a metric to compare."""
        return self._auto or bool(self.metrics)

    @property
    def reads(self) -> tuple[str, ...]:
        """The metrics that the validation must produce."""
        return tuple(f"val/{name}" for name in self.metrics)

    @property
    def scores(self) -> dict[str, float]:
        """The best value of each metric, as far as there is one."""
        return {name: values[0] for name, values in self._values.items()}

    @property
    def kept(self) -> dict[str, list[float]]:
        """The values of each metric that count as the best, the best first."""
        return {name: values[: self._keep] for name, values in self._values.items()}

    @kept.setter
    def kept(self, values: Mapping[str, Sequence[float]]) -> None:
        self._values = {name: list(some) for name, some in values.items() if some}

    @property
    def rules(self) -> dict[str, Rule]:
        """Whether more or less of each watched metric is better."""
        return {name: self._rule(index, name) for index, name in enumerate(self.metrics)}

    def update(self, metrics: Mapping[str, float], streams: Collection[str] = ()) -> list[str]:
        """Add the metrics of a validation; return the names of those that are among the best.

        Args:
            metrics: By their names within the phase.
            streams: All validation streams, of which some may have been left out.
        """
        if self._auto and not self.metrics and metrics:
            self.metrics = [self._choose(metrics)]
        better = []
        for index, name in enumerate(self.metrics):
            if is_left_out(f"val/{name}", [f"val/{one}" for one in metrics], streams):
                continue
            if name not in metrics:
                listed = ", ".join(metrics) or "nothing"
                raise MetricError(
                    f"The validation has no metric '{name}' to compare.{nearest(name, metrics)} It "
                    f"has: {listed}."
                )
            value, rule = metrics[name], self._rule(index, name)
            known = self._values.get(name, [])
            last = known[self._keep - 1 : self._keep] if self._keep is not None else []
            if math.isfinite(value) and is_better(value, last[0] if last else None, rule):
                place = sum(not is_better(value, one, rule) for one in known)
                self._values[name] = [*known[:place], value, *known[place:]]
                better.append(name)
        return better

    def revert(self, metric: str, value: float) -> None:
        """Forget a value, because its checkpoint could not be saved; what it displaced is back."""
        values = self._values.get(metric, [])
        if value in values:
            values.remove(value)
        if not values:
            self._values.pop(metric, None)

    def _choose(self, metrics: Mapping[str, float]) -> str:
        """Return the first metric that is not a loss, of those whose names show their rule."""
        others = [name for name in metrics if "loss" not in name]
        clear = [name for name in others if self._rules or rule_of(name, *self._keys)]
        # What a step returns beside its loss may be a part of it, and is not meant then.
        losses = [name for name in metrics if "loss" in name]
        return next(iter([*clear, *losses, *others]))

    def _rule(self, index: int, name: str) -> Rule:
        rule = self._rules[index] if self._rules else rule_of(name, *self._keys)
        if rule not in ("greater", "less"):
            hint = nearest_metric(name)
            raise HookError(
                f"The name '{name}' does not show whether more or less is better.{hint} "
                f"{'Otherwise give' if hint else 'Give'} rule='greater' or rule='less'."
            )
        return rule


class Best(TypedDict):
    """A value, and the iteration and epoch that reached it."""

    value: float
    iter: int
    epoch: int


class BestValues:
    """The best value of each metric so far; a tie keeps the older one, and NaN is never best.

    >>> best = BestValues()
    >>> best.update({"val/loss": 0.5}, iter=10, epoch=1)
    >>> best.update({"val/loss": float("nan"), "val/zebra": 3.0}, iter=20, epoch=2)
    >>> best.all()
    {'val/loss': {'value': 0.5, 'iter': 10, 'epoch': 1}}
    """

    def __init__(self) -> None:
        self._best: dict[str, Best] = {}

    def update(
        self,
        values: Mapping[str, float],
        *,
        iter: int,
        epoch: int,
        rules: Mapping[str, Rule] | None = None,
    ) -> None:
        """Compare the values of one evaluation with the best; rules come before names."""
        for name, value in values.items():
            rule = (rules or {}).get(name) or rule_of(name)
            best = self._best.get(name)
            # Without a rule a "best" would be a guess, which a summary must not show as a fact.
            if rule and is_better(value, best["value"] if best else None, rule):
                self._best[name] = {"value": value, "iter": iter, "epoch": epoch}

    def all(self) -> dict[str, Best]:
        """Return the best value of each metric."""
        return dict(self._best)

    def state_dict(self) -> dict[str, object]:
        """Return plain values, for a checkpoint."""
        return {name: dict(best) for name, best in self._best.items()}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Restore what `state_dict` returned."""
        self._best = {name: cast("Best", dict(cast("Best", best))) for name, best in state.items()}
