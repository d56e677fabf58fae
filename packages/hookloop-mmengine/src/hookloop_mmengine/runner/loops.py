"""``mmengine.runner.loops``: the loops, under the names that hooks import."""

from __future__ import annotations

from hookloop_mmengine.loops import (
    EpochBasedTrainLoop,
    IterBasedTrainLoop,
    TestLoop,
    ValLoop,
    _InfiniteDataloaderIterator,
)
from hookloop_mmengine.loops import LoopView as BaseLoop

__all__ = [
    "BaseLoop",
    "EpochBasedTrainLoop",
    "IterBasedTrainLoop",
    "TestLoop",
    "ValLoop",
    "_InfiniteDataloaderIterator",
]
