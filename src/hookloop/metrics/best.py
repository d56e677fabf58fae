"""The best value of each metric, for metrics whose name shows whether more or less is better."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict, cast

from hookloop.runs.policy import Rule, is_better, rule_of


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
