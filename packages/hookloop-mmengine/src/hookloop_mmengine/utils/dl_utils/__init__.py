"""``mmengine.utils.dl_utils``: small functions around torch."""

from __future__ import annotations

from torch.hub import load_state_dict_from_url as load_url

from hookloop_mmengine.utils.dl_utils.collect_env import collect_env
from hookloop_mmengine.utils.dl_utils.misc import (
    has_batch_norm,
    is_norm,
    mmcv_full_available,
    tensor2imgs,
)
from hookloop_mmengine.utils.dl_utils.parrots_wrapper import TORCH_VERSION
from hookloop_mmengine.utils.dl_utils.setup_env import set_multi_processing
from hookloop_mmengine.utils.dl_utils.time_counter import TimeCounter
from hookloop_mmengine.utils.dl_utils.torch_ops import torch_meshgrid
from hookloop_mmengine.utils.dl_utils.trace import is_jit_tracing

__all__ = [
    "TORCH_VERSION",
    "TimeCounter",
    "collect_env",
    "has_batch_norm",
    "is_jit_tracing",
    "is_norm",
    "load_url",
    "mmcv_full_available",
    "set_multi_processing",
    "tensor2imgs",
    "torch_meshgrid",
]
