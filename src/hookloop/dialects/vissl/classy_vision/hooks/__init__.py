"""ClassyVision's hooks; a name is imported when it is first used."""

from __future__ import annotations

from importlib import import_module

from hookloop.dialects.vissl.classy_vision.hooks.classy_hook import (
    ClassyHook,
    ClassyHookFunctions,
    ClassyHookState,
)
from hookloop.dialects.vissl.classy_vision.hooks.registry import (
    BUILT_IN,
    build_hook,
    build_hooks,
    register_hook,
)

MODULES = {path.split(":")[1]: path.split(":")[0] for path in BUILT_IN.values()}
"""Where each hook is."""

__all__ = [
    "ClassyHook",
    "ClassyHookFunctions",
    "ClassyHookState",
    "build_hook",
    "build_hooks",
    "register_hook",
    *MODULES,
]


def __getattr__(name: str) -> object:
    if name not in MODULES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module(MODULES[name]), name)


def __dir__() -> list[str]:
    return __all__
