"""VISSL's ``grad_clip_hooks``: hooks in the module of their name."""

from __future__ import annotations

from hookloop_dialects.vissl.hooks.training_hooks import GradClipHook

__all__ = ["GradClipHook"]
