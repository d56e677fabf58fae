"""The stand-in for ``vissl.utils.misc``."""

from __future__ import annotations

from hookloop_dialects.vissl.classy_vision.generic.classy_checkpoints import flatten_dict
from hookloop_dialects.vissl.classy_vision.generic.distributed_util import (
    gather_from_all as concat_all_gather,
)
from hookloop_dialects.vissl.utils.availability import (
    is_apex_available,
    is_wandb_available,
)

__all__ = [
    "concat_all_gather",
    "flatten_dict",
    "is_apex_available",
    "is_wandb_available",
]
