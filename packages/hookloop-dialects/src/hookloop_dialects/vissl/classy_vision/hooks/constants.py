"""``classy_vision.hooks.constants``: ClassyVision's events."""

from __future__ import annotations

from hookloop_dialects.vissl.classy_vision.hooks.classy_hook import ClassyHookFunctions

__all__ = ["ClassyHookFunctions"]
