"""``mmengine.optim.scheduler.momentum_scheduler``: schedulers of the momentum."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hookloop_mmengine.optim.schedules import (
    ConstantMomentum,
    CosineAnnealingMomentum,
    CosineRestartMomentum,
    ExponentialMomentum,
    LinearMomentum,
    MultiStepMomentum,
    PolyMomentum,
    ReduceOnPlateauMomentum,
    StepMomentum,
)

if TYPE_CHECKING:
    from torch.optim import Optimizer

__all__ = [
    "ConstantMomentum",
    "CosineAnnealingMomentum",
    "CosineRestartMomentum",
    "ExponentialMomentum",
    "LinearMomentum",
    "MomentumSchedulerMixin",
    "MultiStepMomentum",
    "PolyMomentum",
    "ReduceOnPlateauMomentum",
    "StepMomentum",
]


class MomentumSchedulerMixin:
    """Let a scheduler act on the momentum; it comes first among the base classes.

    For Adam and its like the momentum is the first beta.
    """

    def __init__(self, optimizer: Optimizer, *args: object, **kwargs: object) -> None:
        for group in optimizer.param_groups:
            if "momentum" not in group and "betas" not in group:
                raise ValueError("optimizer must support momentum when using momentum scheduler")
            # Schedulers of projects read and compute it under this name.
            if "betas" in group:
                group["momentum"] = group["betas"][0]
        super().__init__(optimizer, "momentum", *args, **kwargs)  # type: ignore[call-arg]

    def _set(self, group: dict[str, object], value: float) -> None:
        group["momentum"] = value
        if "betas" in group:
            group["betas"] = (value, *cast("tuple[float, ...]", group["betas"])[1:])
