"""The best validation so far, by one watched metric or several."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from hookloop.errors import HookError, MetricError, nearest
from hookloop.metrics.results import is_left_out
from hookloop.runs.policy import Rule, is_better, nearest_metric, rule_of


class BestScores:
    """The best value of each watched metric; a tie keeps the older, and NaN never wins.

    Args:
        best: A metric, several, or ``"auto"`` for the first metric of a validation that is not a
            loss and whose name shows its rule, or else the first loss.
        rule: ``"greater"`` or ``"less"`` is better: one for all, one per metric, or None to infer.
        greater_keys: Parts of the names of metrics that are better when greater.
        less_keys: Parts of the names of metrics that are better when less.

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
        self.scores: dict[str, float] = {}
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
    def rules(self) -> dict[str, Rule]:
        """Whether more or less of each watched metric is better."""
        return {name: self._rule(index, name) for index, name in enumerate(self.metrics)}

    def update(self, metrics: Mapping[str, float], streams: Collection[str] = ()) -> list[str]:
        """Add the metrics of a validation; return the names of those that are a new best.

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
            if math.isfinite(value) and is_better(value, self.scores.get(name), rule):
                self.scores[name] = value
                better.append(name)
        return better

    def revert(self, metric: str, value: float, before: float | None) -> None:
        """Return to the best before, because the checkpoint of this one could not be saved."""
        # A newer best may have come while the save was in the background; it stays.
        if self.scores.get(metric) == value:
            del self.scores[metric]
            if before is not None:
                self.scores[metric] = before

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
