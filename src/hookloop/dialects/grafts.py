"""Grafts: our engine under a foreign package that is installed.

An alias stands in for a package that is absent. A graft leaves the real package in place, with
everything in it, and replaces only the functions that train, save and load. Importing this module
changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar

from hookloop.dialects.aliases import is_installed
from hookloop.dialects.spawned import InSpawned, Temporary
from hookloop.errors import HookError

if TYPE_CHECKING:
    from hookloop.trainer.adapters import Dialect, Undoable

_ABSENT = object()


class Graft(Temporary):
    """Replaced attributes of a foreign package, until `undo`.

    >>> class Loop:
    ...     def run(self):
    ...         return "theirs"
    >>> with Graft() as graft:
    ...     graft.replace(Loop, "run", lambda self: "ours")
    ...     Loop().run()
    'ours'
    >>> Loop().run()
    'theirs'
    """

    def __init__(self) -> None:
        self._replaced: list[tuple[object, str, object]] = []

    def replace(self, holder: object, name: str, value: object) -> None:
        """Replace an attribute of a class or module; `undo` sets it back."""
        # Not getattr: of a class, that would return what a parent defines.
        self._replaced.append((holder, name, vars(holder).get(name, _ABSENT)))
        setattr(holder, name, value)

    def undo(self) -> None:
        """Set everything back, in the reverse order."""
        while self._replaced:
            holder, name, value = self._replaced.pop()
            if value is _ABSENT:
                delattr(holder, name)
            else:
                setattr(holder, name, value)


class Grafts(Graft):
    """The grafts of several packages, undone together.

    Processes that are spawned in the meantime have them too: they import the script again, which
    may then ask for a graft that is there.

    Args:
        grafts: What makes each of them, by the name of its dialect.
    """

    _active: ClassVar[set[str]] = set()

    def __init__(self, grafts: Mapping[str, Callable[[], Undoable]]) -> None:
        super().__init__()
        self._grafts: dict[str, Undoable] = {}
        for name, make in grafts.items():
            if name not in self._active:
                self._grafts[name] = make()
                self._active.add(name)
        self._in_spawned = InSpawned("hookloop_grafts", graft_here, tuple(grafts))

    def undo(self) -> None:
        """Set everything back, in the reverse order."""
        self._in_spawned.undo()
        for name in reversed(list(self._grafts)):
            self._grafts.pop(name).undo()
            self._active.discard(name)


def graft_here(names: tuple[str, ...]) -> None:
    """Graft packages in this process, which another one has started."""
    from hookloop import dialects

    dialects.graft(*names)


def missing_graft(dialect: Dialect, others: Iterable[Dialect]) -> HookError | None:
    """Return why a dialect cannot be grafted here, or None if it can."""
    if dialect.graft is None:
        names = ", ".join(other.name for other in others if other.graft is not None)
        return HookError(
            f"There is no graft of '{dialect.name}', only of: {names}. Its hooks run in a Trainer "
            "and in configs; --alias stands in for the package where it is absent."
        )
    absent = [package for package in dialect.packages if not is_installed(package)]
    if absent:
        return HookError(
            f"A graft needs the real {absent[0]}, which is not installed: pip install {absent[0]}. "
            f"Where it cannot be installed, --alias {dialect.name} stands in for a part of it."
        )
    return None
