"""Import aliases: ``from theirs.hooks import Hook`` gives ours where theirs is not installed.

Importing this module changes nothing. `alias` sets the aliases and a ``with`` block ends them.
"""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Iterable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, spec_from_loader
from types import ModuleType
from typing import TYPE_CHECKING

from hookloop.dialects.spawned import InSpawned, Temporary

if TYPE_CHECKING:
    from hookloop.dialects import Dialect

_log = logging.getLogger("hookloop")


class Alias(Temporary):
    """Aliases for the packages of some dialects, from now until `undo`.

    A package that is really installed is left alone: its own hooks are adapted instead.
    """

    def __init__(self, dialects: Iterable[Dialect]) -> None:
        self.packages: dict[str, str] = {}
        chosen = list(dialects)
        for dialect in chosen:
            for foreign, ours in dialect.packages.items():
                if is_installed(foreign):
                    _log.info("'%s' is installed, so it is used and its hooks adapted.", foreign)
                else:
                    self.packages[foreign] = ours
        self._finder = _Finder(self.packages, [dialect.name for dialect in chosen])
        # First in the list. Otherwise the standard finder would look for a foreign submodule in
        # our own package's directory and load it a second time.
        sys.meta_path.insert(0, self._finder)
        # A process that is spawned, such as a worker of a loader, imports the script again.
        self._in_spawned = InSpawned("hookloop_aliases", alias_here, self.packages)

    def undo(self) -> None:
        """Remove the aliases; what was imported through them stays usable."""
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
        self._in_spawned.undo()
        # Without this, an import would still find the foreign name in the cache.
        for name in [name for name in sys.modules if name.partition(".")[0] in self.packages]:
            del sys.modules[name]


def alias_here(packages: dict[str, str]) -> None:
    """Alias packages in this process, which another one has started."""
    sys.meta_path.insert(0, _Finder(packages))


class _Finder(MetaPathFinder):
    """Find the modules of aliased packages among ours.

    Attributes:
        chosen_dialects: The dialects that were asked for, also those whose packages are installed.
    """

    def __init__(self, packages: dict[str, str], chosen: Sequence[str] = ()) -> None:
        self._packages = packages
        self.chosen_dialects = tuple(chosen)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, rest = fullname.partition(".")
        if package not in self._packages:
            return None
        ours = f"{self._packages[package]}.{rest}".rstrip(".")
        try:
            found = find_spec(ours)
        except ModuleNotFoundError:  # A parent in the path is not a package.
            found = None
        # Raised here, not left to the other finders: nobody else has the package, and their
        # message would not explain why it is incomplete.
        if found is None:
            instead = getattr(sys.modules.get(self._packages[package]), "INSTEAD", None)
            raise ModuleNotFoundError(
                f"'{fullname}' is not offered: hookloop stands in for '{package}' "
                f"({self._packages[package]}) and has no such module. To use it, "
                f"{instead or f'install {package}, or import the name from hookloop'}.",
                name=fullname,
            )
        is_package = found.submodule_search_locations is not None
        return spec_from_loader(fullname, _Loader(ours), is_package=is_package)


class _Loader(Loader):
    """Give one of our modules a second name; both names mean the same module object.

    With a second object, ``isinstance`` and registries would see every class twice.
    """

    def __init__(self, ours: str) -> None:
        self._ours = ours
        self._spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self._ours)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has replaced it by the alias's spec. Reloads and pickles need ours.
        module.__spec__ = self._spec


def is_installed(package: str) -> bool:
    """Return whether a foreign package itself can be imported, and not only our stand-in."""
    loaded = sys.modules.get(package)
    # Under an earlier alias the loaded module is a stand-in, which has a name of its own.
    if loaded is not None and loaded.__name__ == package:
        return True
    # An earlier alias's finder would find every package that it stands in for.
    finders = [finder for finder in sys.meta_path if not isinstance(finder, _Finder)]
    return any(
        finder.find_spec(package, None) is not None
        for finder in finders
        if hasattr(finder, "find_spec")
    )
