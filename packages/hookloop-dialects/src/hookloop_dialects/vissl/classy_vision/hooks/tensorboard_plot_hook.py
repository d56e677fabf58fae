"""`TensorboardPlotHook`, in the module of its name."""

from __future__ import annotations

from hookloop_dialects.vissl.classy_vision.hooks.board_hooks import TensorboardPlotHook

__all__ = ["TensorboardPlotHook"]
