"""The best value that each metric has had, for metrics whose name tells what better means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict, cast

from hookloop.metrics.rule import is_better, rule_of


class Best(TypedDict):
    """A value and when it was reached."""

    value: float
    iter: int
    epoch: int


class BestValues:
    """Keeps the best of each metric; a tie keeps the older one, and NaN is never best.

    >>> best = BestValues()
    >>> best.update({"val/loss": 0.5}, iter=10, epoch=1)
    >>> best.update({"val/loss": float("nan"), "val/zebra": 3.0}, iter=20, epoch=2)
    >>> best.all()
    {'val/loss': {'value': 0.5, 'iter': 10, 'epoch': 1}}
    """

    def __init__(self) -> None:
        self._best: dict[str, Best] = {}

    def update(self, values: Mapping[str, float], *, iter: int, epoch: int) -> None:
        """Take the values of one evaluation."""
        for name, value in values.items():
            rule, known = rule_of(name), self._best.get(name)
            if rule and is_better(value, known["value"] if known else None, rule):
                self._best[name] = {"value": value, "iter": iter, "epoch": epoch}

    def all(self) -> dict[str, Best]:
        """Return the best of each metric."""
        return dict(self._best)

    def state_dict(self) -> dict[str, object]:
        """Return them as plain values."""
        return {name: dict(best) for name, best in self._best.items()}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Take back what `state_dict` returned."""
        self._best = {name: cast("Best", dict(cast("Best", one))) for name, one in state.items()}
