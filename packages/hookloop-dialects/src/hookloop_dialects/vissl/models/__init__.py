"""The stand-in for ``vissl.models``."""

from __future__ import annotations

from hookloop_dialects.vissl.models.building import (
    MODEL_REGISTRY,
    build_model,
    get_model,
    register_model,
)
from hookloop_dialects.vissl.models.model_helpers import (
    get_no_ddp_model,
)

__all__ = [
    "MODEL_REGISTRY",
    "build_model",
    "get_model",
    "get_no_ddp_model",
    "register_model",
]
