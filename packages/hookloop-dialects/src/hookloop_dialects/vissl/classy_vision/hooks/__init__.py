"""ClassyVision's hooks; a name is imported when it is first used."""

from __future__ import annotations

from hookloop.dialects import lazy_names
from hookloop_dialects.vissl.classy_vision.hooks.classy_hook import (
    ClassyHook,
    ClassyHookFunctions,
    ClassyHookState,
)
from hookloop_dialects.vissl.classy_vision.hooks.registry import (
    BUILT_IN,
    HOOK_REGISTRY,
    build_hook,
    build_hooks,
    register_hook,
)

MODULES = {path.split(":")[1]: path.split(":")[0] for path in BUILT_IN.values()}
"""The module of each hook, by its full path."""

__all__ = [
    "HOOK_REGISTRY",
    "ClassyHook",
    "ClassyHookFunctions",
    "ClassyHookState",
    "build_hook",
    "build_hooks",
    "register_hook",
    *MODULES,
]


__getattr__, __dir__ = lazy_names(__name__, MODULES, __all__)
