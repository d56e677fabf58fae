"""Hooks written for another system: a dialect turns them into native hooks.

Dialects are plug-ins. Each is a `Dialect`, found through the entry-point group
``hookloop.dialects``; the engine knows none of them by name, and a run without foreign hooks
imports none.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import Protocol, cast

from hookloop import beside
from hookloop.engine.hook import Hook
from hookloop.errors import HookError, nearest
from hookloop.plug_ins import misfit

GROUP = "hookloop.dialects"

_log = logging.getLogger("hookloop")


def _no_names() -> Mapping[str, str]:
    return {}


class Undoable(Protocol):
    """A change of a foreign package that can be taken back."""

    def undo(self) -> None:
        """Set everything back."""


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """One foreign hook system, as a plug-in describes it.

    Attributes:
        name: As configs and the command line write it.
        bases: Base classes of its hooks: the package, and the name of the class.
        adapt: Returns native hooks that stand for a foreign one. It is called only for hooks of
            this dialect, so that it may import what it needs.
        catalogue: Returns the system's own hooks by the names that configs use, and the path of
            each: ``module:Class``.
        packages: Foreign packages, and the package of the dialect that replaces each in alias mode.
        registries: Where the system's decorators register classes: the module, the registry in it,
            and the attribute that maps names to classes.
        settings: Keys besides a hook's arguments that a config may have; they are set on the hook.
        gives_all: Whether a hook with ``**kwargs`` is given model, data set and directory.
        default_hooks: What the system calls our default hooks; an entry under its name replaces
            ours.
        graft: Puts our engine under the installed package, and returns what takes it back; None if
            there is no such graft. It is called only to graft, so it may import the package.
        former: Modules of older versions of the system, which the dialect does not stand in for,
            and what to do with files that import them.
        sections: Config keys that only this system, or few, use: under them, a name that several
            dialects have means the hook of this one.
        keys: Keys of the system's own configs, and ours, ``hooks`` or ``imports``, that each adds
            to; a mapping under such a key holds the values under our name.
    """

    name: str
    bases: tuple[tuple[str, str], ...]
    adapt: Callable[[object], list[Hook]]
    catalogue: Callable[[], Mapping[str, str]] = _no_names
    packages: Mapping[str, str] = field(default_factory=dict)
    registries: tuple[tuple[str, str, str], ...] = ()
    settings: tuple[str, ...] = ()
    gives_all: bool = False
    default_hooks: Mapping[str, str] = field(default_factory=dict)
    graft: Callable[[], Undoable] | None = None
    sections: tuple[str, ...] = ()
    keys: Mapping[str, str] = field(default_factory=dict)
    former: Mapping[str, str] = field(default_factory=dict)


@cache
def dialects() -> Mapping[str, Dialect]:
    """Find the installed dialects by name; what is installed does not change within a process."""
    found: dict[str, Dialect] = {}
    # Sorted, because the order of entry points depends on how the packages were installed.
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        dialect = _load(entry)
        if dialect is not None and found.setdefault(dialect.name, dialect) is not dialect:
            _log.warning("Two packages bring a dialect '%s': the first is used.", dialect.name)
    return MappingProxyType(found)


def _load(entry: EntryPoint) -> Dialect | None:
    """Load one plug-in; a broken one is reported and does not take the others with it."""
    source = entry.dist.name if entry.dist is not None else "an unknown package"
    if (problem := misfit(entry)) is not None:
        _log.warning("The dialect '%s' is left out: %s", entry.name, problem)
        return None
    try:
        dialect = entry.load()
    except Exception as error:  # noqa: BLE001 - code of another package, reported here
        _log.warning(
            "The dialect '%s' of %s cannot be loaded: %s: %s",
            entry.name,
            source,
            type(error).__name__,
            error,
        )
        return None
    if not isinstance(dialect, Dialect):
        _log.warning(
            "The dialect '%s' of %s is ignored: '%s' is a %s, not a hookloop.dialects.Dialect.",
            entry.name,
            source,
            entry.value,
            type(dialect).__name__,
        )
        return None
    return dialect


def named(name: str) -> Dialect:
    """Return a dialect by its name."""
    known = dialects()
    if name not in known:
        owner = next((one.name for one in known.values() if name in one.packages), None)
        if owner is not None:
            raise HookError(
                f"'{name}' is a package, not a dialect: write '{owner}', the dialect that stands "
                "in for it."
            )
        if name in beside.EXTRAS:
            raise HookError(
                f"The dialect '{name}' is in a package of its own: {beside.install(name)}."
            )
        listed = ", ".join(known) or "none"
        raise HookError(f"'{name}' is not a dialect.{nearest(name, known)} There are: {listed}.")
    return known[name]


def dialect_of(foreign: object) -> Dialect | None:
    """Return the dialect of a hook: by its attribute ``dialect``, or by its base class."""
    given = getattr(foreign, "dialect", None)
    return named(given) if isinstance(given, str) else dialect_of_class(type(foreign))


def dialect_of_class(hook: type) -> Dialect | None:
    """Return the dialect that a class of hooks was written for."""
    given = getattr(hook, "dialect", None)
    if isinstance(given, str):
        return named(given)
    for kind in hook.__mro__:
        for dialect in dialects().values():
            for package, name in dialect.bases:
                # By name, because the foreign package need not be installed. The dot keeps a
                # package whose name only starts the same from matching.
                if kind.__name__ == name and f"{kind.__module__}.".startswith(f"{package}."):
                    return dialect
    return None


def missing_dialect(package: str = "", hook: str = "") -> str:
    """Return which package to install for a foreign package or hook; empty if there is none."""
    known = dialects()
    found = [*beside.dialects_of_package(package), *beside.dialects_of_hook(hook)]
    absent = [name for name in found if name not in known]
    ways = " or ".join(f"the dialect '{name}' ({beside.install(name)})" for name in absent)
    what = f"Hooks of '{package}' run" if package else "It runs"
    return f" {what} with {ways}." if ways else ""


def adapt(hook: object) -> list[Hook]:
    """Return a native hook as it is, or the native hooks that stand for a foreign one.

    What no dialect knows is returned too: the plan rejects it, with an explanation.
    """
    if isinstance(hook, Hook | type):
        return [cast("Hook", hook)]
    dialect = dialect_of(hook)
    if dialect is not None:
        return dialect.adapt(hook)
    for kind in type(hook).__mro__:
        if hint := missing_dialect(kind.__module__.partition(".")[0]):
            raise HookError(f"{type(hook).__name__} was written for another system.{hint}")
    return [cast("Hook", hook)]


def adapt_all(hooks: Iterable[object]) -> list[Hook]:
    """Adapt several."""
    return numbered((hook, adapt(hook)) for hook in hooks)


def numbered(adapted: Iterable[tuple[object, list[Hook]]]) -> list[Hook]:
    """List adapted hooks; foreign ones of one name get numbers, as their systems ask for none."""
    listed: list[Hook] = []
    taken: Counter[str] = Counter()
    for hook, ours in adapted:
        for one in ours:
            name = getattr(one, "name", "")
            taken[name] += 1
            # Native hooks keep their names: if two are the same, the plan rejects them.
            if one is not hook and taken[name] > 1:
                one.named(f"{name}_{taken[name]}")
        listed += ours
    return listed
