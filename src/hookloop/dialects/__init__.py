"""Dialects: hooks written for another system run as they are.

A dialect is a plug-in: a `Dialect` that a package lists in the entry-point group
``hookloop.dialects``. It has an adapter (turns a foreign hook into native ones), usually a facade
(the run in the form of that system's runner, task or trainer), a catalogue (that system's own
hooks, built from ours) and modules named like the foreign ones, for files that import them.

    Dialect         the description of one foreign system
    installed       the installed dialects by name
    alias           let files import a foreign package that is not installed
    graft           put our engine under a foreign package that is installed
    catalogued      which dialects have a hook of a name

What a dialect is made of, for packages that bring one:

    Adapter         a foreign hook as a native one: its methods are called at our mount points
    Mount           which foreign method is called at which point, and how
    Facade          the run in the form that foreign hooks expect; ForeignAttributeError names
                    what it does not offer
    Companion       a native hook that keeps what the hooks of a dialect share in a run
    Catalogued      a foreign hook whose work native hooks do
    ConfigView      a config with attributes and items
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, cast

from hookloop.lazy import load_name
from hookloop.trainer.adapters import Dialect, adapt, dialect_of, dialect_of_class, named
from hookloop.trainer.adapters import dialects as installed

if TYPE_CHECKING:
    from hookloop.dialects.adapter import (
        Adapter,
        Catalogued,
        Facade,
        ForeignAttributeError,
        Method,
        Mount,
        base_of,
        overridden,
    )
    from hookloop.dialects.aliases import Alias
    from hookloop.dialects.companion import Companion, facade_in
    from hookloop.dialects.config_view import ConfigView
    from hookloop.dialects.grafts import Grafts
    from hookloop.engine.hook import Call
    from hookloop.errors import HookError


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
    for dialect in sorted(installed().values(), key=lambda one: one.name not in chosen()):
        for module, registry, attribute in dialect.registries:
            # A registry whose module was never imported is empty, so it is not imported here.
            holder = getattr(sys.modules.get(module), registry, None)
            found = getattr(holder, attribute, {}).get(name)
            if found is not None:
                return cast("object", found)
    return None


def chosen() -> tuple[str, ...]:
    """Return the dialects that were chosen for this process, with ``--alias`` for example."""
    # They are kept where they take effect, among the finders of imports, so that an `undo` ends
    # both.
    return tuple(
        name for finder in sys.meta_path for name in getattr(finder, "chosen_dialects", ())
    )


def catalogued(name: str, section: str = "") -> dict[str, str]:
    """Return the paths of a hook by dialect, for those dialects that a config can mean.

    Of several, the ones that were chosen on the command line count; then those that have the
    section of the config in which the name is written.

    Args:
        name: The name of the hook.
        section: The key of the config under which it is written.
    """
    systems = {dialect.name: dialect for dialect in installed().values()}
    found = {
        system: names[name]
        for system, dialect in systems.items()
        if name in (names := dialect.catalogue())
    }
    for meant in (
        chosen(),
        [system for system, dialect in systems.items() if section in dialect.sections],
    ):
        if len(found) > 1:
            found = {system: found[system] for system in found if system in meant} or found
    return found


def alias_hint(error: BaseException) -> str:
    """Return how to import a foreign package that is missing; empty for any other error."""
    name = (error.name or "") if isinstance(error, ModuleNotFoundError) else ""
    package = name.partition(".")[0]
    for dialect in installed().values():
        if name in dialect.former:
            return dialect.former[name]
        # Under the alias, the message says already what our modules lack.
        if package in dialect.packages and dialect.name not in chosen():
            return f"--alias {dialect.name} lets files import '{package}' without it."
    return ""


def alias(*names: str) -> Alias:
    """Let files import foreign packages that are not installed; see `hookloop.dialects.aliases`."""
    # Imported here because `import hookloop.dialects` happens in every run that has a config.
    from hookloop.dialects.aliases import Alias

    return Alias([named(name) for name in names])


def graft(*names: str) -> Grafts:
    """Put our engine under foreign packages that are installed, until ``undo()``.

    It also works as a ``with`` block. What scripts import stays the real package. A package that is
    grafted already stays so until its first graft is undone.

    Raises:
        HookError: If there is no graft of this name, or its package is not installed.
    """
    from hookloop.dialects.grafts import Grafts, missing_graft

    dialects = {name: named(name) for name in names}
    for dialect in dialects.values():
        if (problem := missing_graft(dialect, installed().values())) is not None:
            raise problem
    return Grafts({name: one.graft for name, one in dialects.items() if one.graft is not None})


# Imported when they are first used: only a run with foreign hooks needs them.
_MODULES = {
    "Adapter": "hookloop.dialects.adapter",
    "Call": "hookloop.engine.hook",
    "Catalogued": "hookloop.dialects.adapter",
    "Companion": "hookloop.dialects.companion",
    "ConfigView": "hookloop.dialects.config_view",
    "Facade": "hookloop.dialects.adapter",
    "ForeignAttributeError": "hookloop.dialects.adapter",
    "HookError": "hookloop.errors",
    "Method": "hookloop.dialects.adapter",
    "Mount": "hookloop.dialects.adapter",
    "base_of": "hookloop.dialects.adapter",
    "facade_in": "hookloop.dialects.companion",
    "overridden": "hookloop.dialects.adapter",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'hookloop.dialects' has no attribute '{name}'")
    return load_name(globals(), _MODULES[name], name)


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "Adapter",
    "Call",
    "Catalogued",
    "Companion",
    "ConfigView",
    "Dialect",
    "Facade",
    "ForeignAttributeError",
    "HookError",
    "Method",
    "Mount",
    "adapt",
    "alias",
    "alias_hint",
    "base_of",
    "catalogued",
    "chosen",
    "dialect_of",
    "dialect_of_class",
    "facade_in",
    "graft",
    "installed",
    "named",
    "overridden",
    "registered",
    "stand_in",
]
