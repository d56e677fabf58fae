"""What is beside the engine: distributions of their own, released together with it."""

from __future__ import annotations

OWN = ("hookloop", "hookloop_dialects", "hookloop_mmengine")
"""Packages whose code says itself what it requests on all ranks, and draws no random numbers."""


def is_own(value: object) -> bool:
    """Return whether a class or function is hookloop's own rather than its user's."""
    return str(getattr(value, "__module__", "")).partition(".")[0] in OWN
