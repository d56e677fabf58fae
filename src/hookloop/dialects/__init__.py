"""Dialects: hooks written for another system run as they are.

A dialect is a plug-in: a `Dialect` that a package names in the entry-point group
``hookloop.dialects``. It has an adapter (a foreign hook becomes native ones), usually a facade
(what that hook takes for its runner, task or trainer), a catalogue (that system's own hooks, made
from ours) and modules named like the foreign ones, for files that import them.

    Dialect         what a plug-in describes
    installed       the dialects that there are, by name
    alias           lets files import a foreign package that is not installed
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, cast

from hookloop.trainer.adapters import Dialect, adapt, dialect_of, dialect_of_class, named
from hookloop.trainer.adapters import dialects as installed

if TYPE_CHECKING:
    from hookloop.dialects.aliases import Alias


def stand_in(path: str) -> str:
    """Lead a path into a foreign package that is not installed to what stands in for it.

    >>> stand_in("emloop.hooks.SaveBest"), stand_in("my_project.hooks.MyHook")
    ('hookloop.dialects.emloop.hooks.SaveBest', 'my_project.hooks.MyHook')
    """
    package, dot, rest = path.partition(".")
    for dialect in installed().values() if dot else ():
        if package in dialect.packages and find_spec(package) is None:
            return f"{dialect.packages[package]}.{rest}"
    return path


def registered(name: str) -> object:
    """Find a class that a file has registered with a foreign decorator; None if there is none."""
    for dialect in installed().values():
        for module, registry, attribute in dialect.registries:
            holder = getattr(sys.modules.get(module), registry, None)  # Not loaded: nothing there.
            found = getattr(holder, attribute, {}).get(name)
            if found is not None:
                return cast("object", found)
    return None


def alias(*names: str) -> Alias:
    """Let files import foreign packages that are not installed; see `hookloop.dialects.aliases`."""
    from hookloop.dialects.aliases import Alias

    return Alias([named(name) for name in names])


__all__ = [
    "Dialect",
    "adapt",
    "alias",
    "dialect_of",
    "dialect_of_class",
    "installed",
    "named",
    "registered",
    "stand_in",
]
