"""The stand-in for ``fairscale.nn``."""

from __future__ import annotations

from hookloop_dialects.vissl.fairscale.nn.data_parallel import FullyShardedDataParallel

__all__ = ["FullyShardedDataParallel"]
