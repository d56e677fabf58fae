"""`ProgressBarHook`, in the module of its name."""

from __future__ import annotations

from hookloop_dialects.vissl.classy_vision.hooks.rows import ProgressBarHook

__all__ = ["ProgressBarHook"]
