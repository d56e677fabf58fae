"""The dialect of VISSL and ClassyVision: `ClassyHook` with ten events, and their own hooks."""

from __future__ import annotations

from hookloop.dialects.vissl.classy_vision.hooks.classy_hook import (
    ClassyHook,
    ClassyHookFunctions,
    ClassyHookState,
)
from hookloop.dialects.vissl.classy_vision.hooks.registry import (
    build_hook,
    build_hooks,
    register_hook,
)
from hookloop.dialects.vissl.hooks.functions import SSLClassyHookFunctions
from hookloop.dialects.vissl.task import Task

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
