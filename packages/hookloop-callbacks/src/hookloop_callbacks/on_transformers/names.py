"""Names of metrics, and the strategies of intervals, as Transformers writes them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class IntervalStrategy(StrEnum):
    """When something is done."""

    NO = "no"
    STEPS = "steps"
    EPOCH = "epoch"


class SaveStrategy(StrEnum):
    """When a checkpoint is saved."""

    NO = "no"
    STEPS = "steps"
    EPOCH = "epoch"
    BEST = "best"


def evaluated(metrics: Mapping[str, float], prefix: str) -> dict[str, float]:
    """Name the metrics of an evaluation as Transformers does.

    >>> evaluated({"val/loss": 0.5, "val/clean/acc": 1.0}, "eval")
    {'eval_loss': 0.5, 'eval_clean_acc': 1.0}
    """
    return {
        f"{prefix}_{name.partition('/')[2].replace('/', '_')}": float(value)
        for name, value in metrics.items()
    }
