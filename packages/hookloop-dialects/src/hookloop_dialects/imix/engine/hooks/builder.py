"""`HOOKS`: the registry of iMIX's hooks, and `build_hooks`: make those of ``custom_hooks``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hookloop.dialects import Names

# A path, since the catalogue imports this package.
HOOKS = Names("HOOKS", "hookloop_dialects.imix.catalogue:CATALOGUE")


def build_hook(cfg: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a hook of any kind
    """Make a hook from ``dict(type='EMAIterHook', level=30, ...)``."""
    settings = dict(cfg)  # A copy: iMIX removes keys from the config itself.
    level = settings.pop("level", None)
    kind = settings.pop("type")
    make = HOOKS.get(kind) if isinstance(kind, str) else kind
    hook = make(**settings)
    # Not an argument: the constructors do not take it.
    if level is not None:
        hook.level = level
    return hook


def build_hooks(custom_hooks: Iterable[Mapping[str, Any]]) -> list[Any]:
    """Make the hooks in a config's ``custom_hooks``."""
    return [build_hook(cfg) for cfg in custom_hooks]
