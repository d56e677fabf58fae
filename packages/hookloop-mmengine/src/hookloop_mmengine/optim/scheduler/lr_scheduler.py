"""``mmengine.optim.scheduler.lr_scheduler``: schedulers of the learning rate."""

from __future__ import annotations

from hookloop_mmengine.optim.schedules import (
    ConstantLR,
    CosineAnnealingLR,
    CosineRestartLR,
    ExponentialLR,
    LinearLR,
    MultiStepLR,
    OneCycleLR,
    PolyLR,
    ReduceOnPlateauLR,
    StepLR,
)

__all__ = [
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineRestartLR",
    "ExponentialLR",
    "LRSchedulerMixin",
    "LinearLR",
    "MultiStepLR",
    "OneCycleLR",
    "PolyLR",
    "ReduceOnPlateauLR",
    "StepLR",
]


class LRSchedulerMixin:
    """Let a scheduler act on the learning rate; it comes first among the base classes."""

    def __init__(self, optimizer: object, *args: object, **kwargs: object) -> None:
        super().__init__(optimizer, "lr", *args, **kwargs)  # type: ignore[call-arg]
