"""``vissl.utils.layer_memory_tracking``: the memory of each layer, which is not offered."""

from __future__ import annotations

from hookloop_dialects.vissl.not_offered import LayerwiseMemoryTracker, ProcessGroupTracker
from hookloop_dialects.vissl.utils.profiler import null_context

__all__ = ["LayerwiseMemoryTracker", "ProcessGroupTracker", "null_context"]
