"""VISSL's ``model_output_mask_hook``: hooks in the module of their name."""

from __future__ import annotations

from hookloop_dialects.vissl.hooks.training_hooks import ModelOutputMaskHook

__all__ = ["ModelOutputMaskHook"]
