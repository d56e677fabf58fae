"""Dialects: hooks written for another system run as they are.

A dialect is a package here: ``adapter`` (a foreign hook becomes native ones), a facade (what that
hook takes for its runner, task or trainer), a catalogue (that system's own hooks, made from ours)
and modules named like the foreign ones, for files that import them.

    DIALECTS        what there is, and by which base class a foreign hook is recognised
    adapt           a foreign hook -> native hooks; the Trainer calls it for what is no hook of ours
    alias           lets files import a foreign package that is not installed
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, cast

from hookloop.errors import HookError, nearest

if TYPE_CHECKING:
    from hookloop.core.hook import Hook
    from hookloop.dialects.aliases import Alias


@dataclass(frozen=True)
class Dialect:
    """One foreign hook system.

    Attributes:
        name: As configs and the command line say it.
        bases: Base classes of its hooks: top package and class name.
        packages: Foreign packages and which of ours stands for each in the alias mode.
        catalogue: Names of its built-in hooks in a config, and where each is: ``module:Class``.
        settings: What a config says of a hook besides its arguments, and is set on it.
        gives_all: Whether every hook is given model, data set and directory, whatever it names.
    """

    name: str
    bases: tuple[tuple[str, str], ...]
    packages: Mapping[str, str]
    catalogue: str | None = None
    settings: tuple[str, ...] = ()
    gives_all: bool = False

    @property
    def home(self) -> str:
        """The package of the dialect; its module ``adapter`` has the function ``adapt``."""
        return f"{__name__}.{self.name}"

    def names(self) -> Mapping[str, str]:
        """Return the catalogue: names of hooks, and where each is."""
        if self.catalogue is None:
            return {}
        module, name = self.catalogue.split(":")
        return cast("Mapping[str, str]", getattr(import_module(module), name))


def _dialect(
    name: str,
    *bases: tuple[str, str],
    packages: Mapping[str, str],
    settings: tuple[str, ...] = (),
    gives_all: bool = False,
) -> Dialect:
    home = f"{__name__}.{name}"
    own = tuple((home, base) for base in dict.fromkeys(base for _, base in bases))
    ours = {package: f"{__name__}.{path}" for package, path in packages.items()}
    catalogue = f"{home}.catalogue:CATALOGUE"
    return Dialect(name, (*bases, *own), ours, catalogue, settings, gives_all)


DIALECTS: dict[str, Dialect] = {
    one.name: one
    for one in (
        _dialect("mmengine", ("mmengine", "Hook"), packages={"mmengine": "mmengine"}),
        _dialect(
            "emloop",
            ("emloop", "AbstractHook"),
            (".hooks", "AbstractHook"),  # The module that emloop gives its base class.
            packages={"emloop": "emloop", "emloop_tensorflow": "emloop.tensorflow_hooks"},
            gives_all=True,
        ),
        _dialect(
            "vissl",
            ("classy_vision", "ClassyHook"),
            packages={"vissl": "vissl", "classy_vision": "vissl.classy_vision"},
        ),
        _dialect("imix", ("imix", "HookBase"), packages={"imix": "imix"}, settings=("level",)),
        _dialect("pointrix", ("pointrix", "Hook"), packages={"pointrix": "pointrix"}),
    )
}


def adapt(foreign: object) -> list[Hook]:
    """Make native hooks of a foreign one; none if no dialect knows it."""
    dialect = dialect_of(foreign)
    if dialect is None:
        return []
    make = cast("Callable[[object], list[Hook]]", import_module(f"{dialect.home}.adapter").adapt)
    return make(foreign)


def dialect_of(foreign: object) -> Dialect | None:
    """Tell which system a hook was written for: by its ``dialect``, or by its base class."""
    said = getattr(foreign, "dialect", None)
    return named(said) if isinstance(said, str) else dialect_of_class(type(foreign))


def dialect_of_class(hook: type) -> Dialect | None:
    """Tell which system a class of hooks was written for."""
    said = getattr(hook, "dialect", None)
    if isinstance(said, str):
        return named(said)
    for kind in hook.__mro__:
        for dialect in DIALECTS.values():
            for package, name in dialect.bases:
                if kind.__name__ == name and f"{kind.__module__}.".startswith(f"{package}."):
                    return dialect
    return None


def stand_in(path: str) -> str:
    """Lead a path into a foreign package that is not installed to what stands in for it.

    >>> stand_in("emloop.hooks.SaveBest"), stand_in("my_project.hooks.MyHook")
    ('hookloop.dialects.emloop.hooks.SaveBest', 'my_project.hooks.MyHook')
    """
    package, dot, rest = path.partition(".")
    for dialect in DIALECTS.values():
        if dot and package in dialect.packages and find_spec(package) is None:
            return f"{dialect.packages[package]}.{rest}"
    return path


# Where each system keeps what was registered with its decorator, and under which attribute.
REGISTRIES = (
    ("mmengine.registry", "HOOKS", "module_dict"),
    (f"{__name__}.mmengine.registry", "HOOKS", "module_dict"),
    (f"{__name__}.imix.engine.hooks.builder", "HOOKS", "_registered"),
    (f"{__name__}.pointrix.hook.base_hook", "HOOK_REGISTRY", "_registered"),
)


def registered(name: str) -> object:
    """Find a class that a file has registered with a foreign decorator; None if there is none."""
    for module, registry, attribute in REGISTRIES:
        holder = getattr(sys.modules.get(module), registry, None)  # Not loaded: nothing is there.
        found = getattr(holder, attribute, {}).get(name)
        if found is not None:
            return cast("object", found)
    return None


def named(name: str) -> Dialect:
    """Return a dialect by its name."""
    if name not in DIALECTS:
        known = ", ".join(DIALECTS)
        raise HookError(f"'{name}' is no dialect.{nearest(name, DIALECTS)} There are: {known}.")
    return DIALECTS[name]


def alias(*names: str) -> Alias:
    """Let files import foreign packages that are not installed; see `hookloop.dialects.aliases`."""
    from hookloop.dialects.aliases import Alias

    return Alias([named(name) for name in names])


__all__ = [
    "DIALECTS",
    "Dialect",
    "adapt",
    "alias",
    "dialect_of",
    "dialect_of_class",
    "named",
    "registered",
    "stand_in",
]
