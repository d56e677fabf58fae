"""fairscale's sharded model, which is not offered."""

from __future__ import annotations

from hookloop_dialects.vissl.not_offered import FullyShardedDataParallel

__all__ = ["FullyShardedDataParallel"]
