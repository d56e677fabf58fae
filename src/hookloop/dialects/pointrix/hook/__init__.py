"""Pointrix's hooks; a name is imported when it is first used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hookloop.dialects.pointrix.catalogue import CATALOGUE
from hookloop.dialects.pointrix.hook.base_hook import HOOK_REGISTRY, Hook

__all__ = ["HOOK_REGISTRY", "Hook", "parse_hooks", *CATALOGUE]


def parse_hooks(cfg: Mapping[str, Mapping[str, Any]] | None, *_: object) -> list[Any]:
    """Make the hooks of ``trainer.hooks``: from any keys to ``{name: ClassName}``.

    Further entries are arguments of the class; Pointrix ignores them.
    """
    hooks = []
    for settings in (cfg or {}).values():
        arguments = dict(settings)
        hooks.append(HOOK_REGISTRY.get(arguments.pop("name"))(**arguments))
    return hooks


def __getattr__(name: str) -> object:
    if name not in CATALOGUE:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return HOOK_REGISTRY.own(name)


def __dir__() -> list[str]:
    return __all__
