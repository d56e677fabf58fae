"""The stand-in for ``vissl.models.heads``."""

from __future__ import annotations

from hookloop_dialects.vissl.models.heads.mlp import MLP

__all__ = ["MLP"]
