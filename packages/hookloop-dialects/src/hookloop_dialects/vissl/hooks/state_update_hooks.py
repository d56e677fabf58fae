"""VISSL's ``state_update_hooks``: hooks in the module of their name."""

from __future__ import annotations

from hookloop_dialects.vissl.classy_vision.hooks.classy_hook import QuietHook
from hookloop_dialects.vissl.hooks.training_hooks import (
    CheckNanLossHook,
    CheckNanModelOutputHook,
    CudaSynchronizeHook,
    FreezeParametersHook,
    SetDataSamplerEpochHook,
    SSLModelComplexityHook,
)

__all__ = [
    "CheckNanLossHook",
    "CheckNanModelOutputHook",
    "CudaSynchronizeHook",
    "FreezeParametersHook",
    "SSLModelComplexityHook",
    "SetDataSamplerEpochHook",
    "UpdateBatchesSeenHook",
    "UpdateTestBatchTimeHook",
    "UpdateTrainBatchTimeHook",
    "UpdateTrainIterationNumHook",
]


# Lists of hooks for the first versions of VISSL name these. What they counted there, the task
# counts here, as in later versions.


class UpdateBatchesSeenHook(QuietHook):
    """Stands for the hook that counted ``task.batches``."""


class UpdateTrainIterationNumHook(QuietHook):
    """Stands for the hook that counted ``task.iteration``."""


class UpdateTrainBatchTimeHook(QuietHook):
    """Stands for the hook that measured ``task.batch_time`` in train phases."""


class UpdateTestBatchTimeHook(QuietHook):
    """Stands for the hook that measured ``task.batch_time`` in test phases."""
