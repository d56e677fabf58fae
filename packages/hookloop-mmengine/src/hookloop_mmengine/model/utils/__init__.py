"""``mmengine.model.utils``: batches of tensors, batch norm layers and the graph of a loss."""

from __future__ import annotations

from hookloop_mmengine.model.utils.batches import merge_dict, stack_batch

__all__ = [
    "merge_dict",
    "stack_batch",
]
