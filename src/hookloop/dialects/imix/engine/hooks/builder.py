"""`HOOKS`: the registry of iMIX's hooks, and what makes hooks of ``custom_hooks``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hookloop.dialects.names import Names

HOOKS = Names("HOOKS", "hookloop.dialects.imix.catalogue:CATALOGUE")


def build_hook(cfg: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a hook of any kind
    """Make a hook of ``dict(type='EMAIterHook', level=30, ...)``."""
    settings = dict(cfg)
    level = settings.pop("level", None)
    kind = settings.pop("type")
    make = HOOKS.get(kind) if isinstance(kind, str) else kind
    hook = make(**settings)
    if level is not None:
        hook.level = level
    return hook


def build_hooks(custom_hooks: Iterable[Mapping[str, Any]]) -> list[Any]:
    """Make the hooks of a config's ``custom_hooks``."""
    return [build_hook(cfg) for cfg in custom_hooks]
