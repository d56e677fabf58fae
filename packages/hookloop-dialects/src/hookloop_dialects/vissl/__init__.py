"""The dialect of VISSL and ClassyVision: `ClassyHook` with ten events, and their own hooks."""

from __future__ import annotations

from hookloop_dialects.vissl.classy_vision.hooks.classy_hook import (
    ClassyHook,
    ClassyHookFunctions,
    ClassyHookState,
)
from hookloop_dialects.vissl.classy_vision.hooks.registry import (
    build_hook,
    build_hooks,
    register_hook,
)
from hookloop_dialects.vissl.hooks.functions import SSLClassyHookFunctions
from hookloop_dialects.vissl.task import Task

__all__ = [
    "ClassyHook",
    "ClassyHookFunctions",
    "ClassyHookState",
    "SSLClassyHookFunctions",
    "Task",
    "build_hook",
    "build_hooks",
    "register_hook",
]
