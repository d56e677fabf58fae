"""``mmengine.utils.dl_utils.misc``: small functions of layers and images."""

from __future__ import annotations

from hookloop_mmengine.utils.dl_utils.images import tensor2imgs
from hookloop_mmengine.utils.dl_utils.layers import (
    has_batch_norm,
    is_norm,
    mmcv_full_available,
)

__all__ = ["has_batch_norm", "is_norm", "mmcv_full_available", "tensor2imgs"]
