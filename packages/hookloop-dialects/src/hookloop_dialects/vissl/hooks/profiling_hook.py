"""VISSL's ``profiling_hook``: hooks in the module of their name."""

from __future__ import annotations

from hookloop_dialects.vissl.hooks.training_hooks import CudaSynchronizeHook, ProfilingHook

__all__ = ["CudaSynchronizeHook", "ProfilingHook"]
