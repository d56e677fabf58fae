"""``mmengine.model.utils``: batches of tensors, batch norm layers and the graph of a loss."""

from __future__ import annotations

from hookloop_mmengine.model.utils.batch_norm import (
    _BatchNormXd,
    convert_sync_batchnorm,
    revert_sync_batchnorm,
)
from hookloop_mmengine.model.utils.batches import merge_dict, stack_batch
from hookloop_mmengine.model.utils.graph import detect_anomalous_params

__all__ = [
    "_BatchNormXd",
    "convert_sync_batchnorm",
    "detect_anomalous_params",
    "merge_dict",
    "revert_sync_batchnorm",
    "stack_batch",
]
