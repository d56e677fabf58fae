"""VISSL's ``tensorboard_hook``: hooks in the module of their name."""

from __future__ import annotations

from hookloop_dialects.vissl.hooks.board_hook import SSLTensorboardHook

__all__ = ["SSLTensorboardHook"]
