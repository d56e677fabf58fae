"""Dialects: hooks written for another system run as they are.

A dialect is a plug-in: a `Dialect` that a package lists in the entry-point group
``hookloop.dialects``. It has an adapter (turns a foreign hook into native ones), usually a facade
(the run in the form of that system's runner, task or trainer), a catalogue (that system's own
hooks, built from ours) and modules named like the foreign ones, for files that import them.

    Dialect         the description of one foreign system
    installed       the installed dialects by name
    alias           let files import a foreign package that is not installed
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
    """Replace a path into a foreign package that is not installed by the path of our stand-in.

    >>> stand_in("emloop.hooks.SaveBest"), stand_in("my_project.hooks.MyHook")
    ('hookloop.dialects.emloop.hooks.SaveBest', 'my_project.hooks.MyHook')
    """
    package, dot, rest = path.partition(".")
    for dialect in installed().values() if dot else ():
        # An installed package wins: its own classes are adapted, whatever their version.
        if package in dialect.packages and find_spec(package) is None:
            return f"{dialect.packages[package]}.{rest}"
    return path


def registered(name: str) -> object:
    """Return a class that a file registered with a foreign decorator, or None."""
    for dialect in installed().values():
        for module, registry, attribute in dialect.registries:
            # A registry whose module was never imported is empty, so it is not imported here.
            holder = getattr(sys.modules.get(module), registry, None)
            found = getattr(holder, attribute, {}).get(name)
            if found is not None:
                return cast("object", found)
    return None


def alias(*names: str) -> Alias:
    """Let files import foreign packages that are not installed; see `hookloop.dialects.aliases`."""
    # Imported here because `import hookloop.dialects` happens in every run that has a config.
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
