"""``mmengine.runner.base_loop``: the base of loops, under the name that files import."""

from __future__ import annotations

from hookloop_mmengine.runner.loops import BaseLoop

__all__ = ["BaseLoop"]
