"""Which validation is the best so far, for one watched metric or several."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from hookloop.errors import HookError, MetricError, nearest
from hookloop.metrics.rule import Rule, is_better, nearest_metric, rule_of


class BestScores:
    """The best value of each watched metric so far; a tie keeps the older, NaN never wins.

    Args:
        best: A metric, several, or ``"auto"`` for the first of a validation that is no loss, if
            there is one.
        rule: Whether greater or less is better: one, one per metric, or None to infer it.
        greater_keys: Parts of names of which more is better.
        less_keys: Parts of names of which less is better.

    >>> scores = BestScores("accuracy", None, ["acc"], ["loss"])
    >>> [scores.improved({"accuracy": value}) for value in (0.5, float("nan"), 0.5, 0.6)]
    [['accuracy'], [], [], ['accuracy']]
    """

    def __init__(
        self,
        best: str | Sequence[str] | None,
        rule: Rule | Sequence[Rule] | None,
        greater_keys: Sequence[str],
        less_keys: Sequence[str],
    ) -> None:
        names = [best] if isinstance(best, str) else list(best or ())
        if "auto" in names and len(names) > 1:
            raise HookError("best='auto' stands alone: it chooses one metric.")
        if len(set(names)) != len(names):
            raise HookError(f"best names a metric twice: {', '.join(names)}.")
        rules = [rule] * max(1, len(names)) if isinstance(rule, str) else list(rule or ())
        if rules and len(rules) != max(1, len(names)):
            raise HookError(f"rule has {len(rules)} entries for {len(names)} metrics.")
        self._auto = names == ["auto"]
        self._rules = rules
        self._keys = (tuple(greater_keys), tuple(less_keys))
        self.metrics = [] if self._auto else [name.removeprefix("val/") for name in names]
        self.scores: dict[str, float] = {}
        for place, name in enumerate(self.metrics):
            self._rule(place, name)

    @property
    def reads(self) -> tuple[str, ...]:
        """What has to be produced."""
        return tuple(f"val/{name}" for name in self.metrics)

    def improved(self, metrics: Mapping[str, float]) -> list[str]:
        """Take the metrics of a validation; return the names that are better than ever."""
        if self._auto and not self.metrics and metrics:
            first = next(iter(metrics))
            self.metrics = [next((name for name in metrics if "loss" not in name), first)]
        better = []
        for place, name in enumerate(self.metrics):
            if name not in metrics:
                known = ", ".join(metrics) or "nothing"
                raise MetricError(
                    f"The validation has no '{name}' to be best at.{nearest(name, metrics)} It "
                    f"has: {known}."
                )
            value, rule = metrics[name], self._rule(place, name)
            if math.isfinite(value) and is_better(value, self.scores.get(name), rule):
                self.scores[name] = value
                better.append(name)
        return better

    def forget(self, metric: str, value: float, before: float | None) -> None:
        """Go back to the best before, because this one could not be kept."""
        if self.scores.get(metric) == value:
            del self.scores[metric]
            if before is not None:
                self.scores[metric] = before

    def _rule(self, place: int, name: str) -> Rule:
        rule = self._rules[place] if self._rules else rule_of(name, *self._keys)
        if rule not in ("greater", "less"):
            raise HookError(
                f"Whether more or less of '{name}' is better cannot be told from its name."
                f"{nearest_metric(name)} Otherwise give rule='greater' or rule='less'."
            )
        return rule
