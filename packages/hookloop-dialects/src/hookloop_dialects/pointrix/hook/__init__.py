"""Pointrix's hooks; each is imported when it is first used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hookloop.dialects import lazy_names
from hookloop_dialects.pointrix.catalogue import CATALOGUE
from hookloop_dialects.pointrix.hook.base_hook import HOOK_REGISTRY, Hook

__all__ = ["HOOK_REGISTRY", "Hook", "parse_hooks"]
__all__.extend(CATALOGUE)


def parse_hooks(cfg: Mapping[str, Mapping[str, Any]] | None, *_: object) -> list[Any]:
    """Make the hooks of ``trainer.hooks``, a mapping from any key to ``{name: ClassName}``.

    Further entries are arguments of the class.
    """
    hooks = []
    for settings in (cfg or {}).values():
        # Pointrix ignores further entries and constructs the class without arguments.
        arguments = dict(settings)
        hooks.append(HOOK_REGISTRY.get(arguments.pop("name"))(**arguments))
    return hooks


__getattr__, __dir__ = lazy_names(
    __name__, {name: path.split(":")[0] for name, path in CATALOGUE.items()}, __all__
)
