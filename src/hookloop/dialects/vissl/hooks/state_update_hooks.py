"""VISSL's ``state_update_hooks``: hooks in the module of their name."""

from __future__ import annotations

from hookloop.dialects.vissl.hooks.training_hooks import (
    CheckNanLossHook,
    CheckNanModelOutputHook,
    CudaSynchronizeHook,
    FreezeParametersHook,
    SetDataSamplerEpochHook,
    SSLModelComplexityHook,
)

__all__ = [
    "CheckNanLossHook",
    "CheckNanModelOutputHook",
    "CudaSynchronizeHook",
    "FreezeParametersHook",
    "SSLModelComplexityHook",
    "SetDataSamplerEpochHook",
]
