"""Names for classes and functions, so that a config can write ``type: StopAfter``.

A name is looked up among the registered ones, then among installed plugins (entry points of
the group ``hookloop.hooks``, ``hookloop.models``, ...), then in the built-in namespace of its kind.
A dotted path (``pkg.module.Class`` or ``pkg.module:Class``) always works, without registration.

Importing this module imports no torch; looking a name up may.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property
from importlib import metadata
from types import FunctionType, MappingProxyType
from typing import TYPE_CHECKING, Generic, TypeVar, overload

from hookloop import peers
from hookloop.config import namespaces
from hookloop.config.locate import describe, locate
from hookloop.errors import ConfigError, HookError, HookloopError, Problem
from hookloop.peers import suggestion
from hookloop.trainer.adapters import missing_dialect

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer
    from torch.optim.lr_scheduler import LRScheduler

    from hookloop.engine.hook import Hook

T_co = TypeVar("T_co", covariant=True)
Factory = TypeVar("Factory", bound=Callable[..., object])


class Registry(Generic[T_co]):
    """The names of one kind of thing, and what they stand for.

    Args:
        kind: What the names stand for, in the singular, as messages show it.
        group: The entry point group of installed plugins.
        builtin: Returns the built-in names; called when a name is first looked up among them.
        peers: Names that other libraries use for them.
        path_of: Returns the path that an unknown name most likely stands for.
        bases: Names of classes from which they derive.

    >>> SHAPES: Registry[object] = Registry("shape", group="example.shapes")
    >>> @SHAPES.register()
    ... class Square: ...
    >>> SHAPES.get("Square") is Square
    True
    >>> SHAPES.get("Sqare")
    Traceback (most recent call last):
    hookloop.errors.ConfigError: no shape is named 'Sqare'. Did you mean 'Square'?
    """

    def __init__(
        self,
        kind: str,
        group: str,
        *,
        builtin: Callable[[], Mapping[str, object]] = dict,
        peers: Mapping[str, str] = MappingProxyType({}),
        path_of: Callable[[str], str] = "package.module:{}".format,
        bases: Collection[str] = (),
    ) -> None:
        self.kind = kind
        self.group = group
        self._builtin_names = builtin
        self._peers = peers
        self.path_of = path_of
        self._bases = bases
        self._registered: dict[str, Callable[..., object]] = {}

    @overload
    def register(self, name: Factory) -> Factory: ...
    @overload
    def register(self, name: str | None = None) -> Callable[[Factory], Factory]: ...
    def register(self, name: Factory | str | None = None) -> Factory | Callable[[Factory], Factory]:
        """Register the decorated class or function, under its own name if none is given.

        A module that is reloaded may register its classes again. Another class under a name that is
        taken is rejected.
        """
        # Without parentheses, `@HOOKS.register` is given the class itself.
        if name is not None and not isinstance(name, str):
            return self._add(name.__name__, name)

        def decorate(factory: Factory) -> Factory:
            return self._add(name or factory.__name__, factory)

        return decorate

    def get(self, name: str) -> Callable[..., T_co]:
        """Return what ``name`` stands for; an unknown name is rejected with the nearest one."""
        try:
            found = self._find(name)
        except HookloopError:
            raise
        except Exception as error:
            problem = f"{self.kind} '{name}' could not be imported: {describe(error)}"
            raise self._error(problem) from error
        if not callable(found):
            article = "an" if self.kind[0] in "aeiou" else "a"
            raise self._error(f"'{name}' is not {article} {self.kind}: it is {found!r}.")
        return found

    def __contains__(self, name: str) -> bool:
        if name in self._registered or name in self._plugins:
            return True
        return not _is_path(name) and name in self._builtin

    def names(self) -> list[str]:
        """Return all names but dotted paths, sorted."""
        return sorted({*self._registered, *self._plugins, *self._builtin})

    def _find(self, name: str) -> object:
        # What the user registered wins over plugins and built-in names.
        if name in self._registered:
            return self._registered[name]
        if name in self._plugins:
            return self._plugins[name].load()
        if _is_path(name):
            return locate(name)
        if name in self._builtin:
            return self._builtin[name]
        if name in self._bases:
            hint = (
                " Hooks derive from that class, which does nothing by itself: write the name of "
                f"one of yours, or its path, '{self.path_of('MyHook')}'."
            )
        else:
            missing = missing_dialect(hook=name) if self.kind == "hook" else ""
            hint = (
                missing
                or suggestion(name, self._peers, self.names())
                or f" Write a registered name, or the path of one: '{self.path_of(name)}'."
            )
        raise self._error(f"no {self.kind} is named '{name}'.{hint}")

    def _add(self, name: str, factory: Factory) -> Factory:
        registered = self._registered.get(name)
        if registered is not None and not _is_same(registered, factory):
            raise self._error(
                f"two {self.group.rpartition('.')[2]} are registered as '{name}': "
                f"{_name(registered)} and {_name(factory)}. Give one of them another name: "
                f"register('other_name')."
            )
        self._registered[name] = factory
        return factory

    @cached_property
    def _plugins(self) -> dict[str, metadata.EntryPoint]:
        # Only the names are read here: a plugin is imported when its name is looked up.
        return {point.name: point for point in metadata.entry_points(group=self.group)}

    @cached_property
    def _builtin(self) -> Mapping[str, object]:
        return self._builtin_names()

    def _error(self, message: str) -> HookloopError:
        return HookError(message) if self.kind == "hook" else ConfigError([Problem(message)])


def _is_path(name: str) -> bool:
    """Return whether a name is a dotted path, which no registry has to be searched for."""
    # The built-in names are slow to list: they import torch.
    return "." in name or ":" in name


def _is_same(one: object, other: object) -> bool:
    """Return whether two classes are the same one, loaded twice.

    That happens when a module is reloaded, or imported under a second name.
    """
    # The defaults differ, so that two objects without a name are not the same.
    if getattr(one, "__qualname__", None) != getattr(other, "__qualname__", ""):
        return False
    same_module = getattr(one, "__module__", None) == getattr(other, "__module__", "")
    return same_module or (_source(one) is not None and _source(one) == _source(other))


def _name(factory: object) -> str:
    name = f"{getattr(factory, '__module__', '?')}.{getattr(factory, '__qualname__', factory)}"
    source = _source(factory)
    return f"{name} ({source})" if source else name


def _source(factory: object) -> str | None:
    if not isinstance(factory, type | FunctionType):
        return None
    try:
        return f"{inspect.getsourcefile(factory)}:{inspect.getsourcelines(factory)[1]}"
    except (OSError, TypeError):  # Typed at a prompt, or not written in Python.
        return None


HOOKS: Registry[Hook] = Registry(
    "hook",
    "hookloop.hooks",
    builtin=namespaces.hooks,
    peers=peers.HOOKS,
    bases=peers.BASES_OF_HOOKS,
)
MODELS: Registry[nn.Module] = Registry("model", "hookloop.models")
OPTIMIZERS: Registry[Optimizer] = Registry(
    "optimizer", "hookloop.optimizers", builtin=namespaces.optimizers
)
SCHEDULES: Registry[LRScheduler] = Registry(
    "schedule", "hookloop.schedules", builtin=namespaces.schedules, peers=peers.SCHEDULES
)
DATA: Registry[Iterable[object]] = Registry("data set", "hookloop.data", builtin=namespaces.data)
LOSSES: Registry[object] = Registry(
    "loss", "hookloop.losses", builtin=namespaces.losses, peers=peers.LOSSES
)
METRICS: Registry[object] = Registry(
    "metric", "hookloop.metrics", builtin=namespaces.metrics, path_of=namespaces.path_of_metric
)
