"""The stand-in for ``fairscale.nn.data_parallel``."""

from __future__ import annotations

from hookloop_dialects.vissl.fairscale.nn.data_parallel.fully_sharded_data_parallel import (
    FullyShardedDataParallel,
)

__all__ = ["FullyShardedDataParallel"]
