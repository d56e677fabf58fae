"""``mmengine.registry.Registry``: classes by name, looked up from child to parent.

Each project of MMEngine has child registries of these. A name that a child does not have is looked
up in its parent, and ``scope.Name`` names the child of a scope.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Self, TypeVar, cast

from hookloop.errors import nearest
from hookloop_mmengine.missing import MISSING, message_for
from hookloop_mmengine.registry.build_functions import build_from_cfg
from hookloop_mmengine.registry.default_scope import DefaultScope
from hookloop_mmengine.utils.misc import get_object_from_string, is_seq_of

_log = logging.getLogger("hookloop")

Factory = Callable[..., object]
T = TypeVar("T", bound=Factory)
BuildFunc = Callable[..., object]


class Registry:
    """Classes and functions of one kind, by name.

    Args:
        name: The kind, for example ``hook``.
        build_func: Builds a config dict; by default the function of the parent.
        parent: The registry to search for names that are not in this one.
        scope: The name of the project; by default the package that creates this registry.
        locations: Modules that register names; they are imported when a name is not found.
    """

    def __init__(
        self,
        name: str,
        build_func: BuildFunc | None = None,
        parent: Registry | None = None,
        scope: str | None = None,
        locations: list[str] | None = None,
    ) -> None:
        self._name = name
        self._module_dict: dict[str, Factory] = {}
        self._children: dict[str, Registry] = {}
        # MMEngine finds the scope this way too, so projects do not name it.
        self.scope = scope or _scope_of(sys._getframe(1).f_globals["__name__"])
        self.parent = parent
        # Not `if parent`: an empty registry has the length 0 and would count as False.
        inherited: BuildFunc = parent.build_func if parent is not None else build_from_cfg
        self.build_func: BuildFunc = build_func or inherited
        self._fallback: Callable[[], Mapping[str, Factory]] = dict
        self._locations = list(locations or ())
        if parent is not None:
            parent._children[self.scope] = self

    def __len__(self) -> int:
        return len(self._module_dict)

    def __contains__(self, key: object) -> bool:
        # Through `get`, because most names are imported only when they are looked up.
        return isinstance(key, str) and self.get(key) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self._module_dict)

    def __repr__(self) -> str:
        return f"Registry({self._name}: {', '.join(self._module_dict)})"

    @property
    def name(self) -> str:
        """The kind."""
        return self._name

    @property
    def module_dict(self) -> dict[str, Factory]:
        """The classes that are registered here, by name."""
        return self._module_dict

    @property
    def children(self) -> dict[str, Registry]:
        """The child registries, by scope."""
        return self._children

    @property
    def root(self) -> Registry:
        """The registry at the top of the tree."""
        root = self
        while root.parent is not None:
            root = root.parent
        return root

    @staticmethod
    def infer_scope() -> str:
        """Return the package of the code that calls the caller of this."""
        return _scope_of(sys._getframe(2).f_globals["__name__"])

    @staticmethod
    def split_scope_key(key: str) -> tuple[str | None, str]:
        """Return the scope of a name, or None, and the rest.

        >>> Registry.split_scope_key("mmdet.ResNet"), Registry.split_scope_key("ResNet")
        (('mmdet', 'ResNet'), (None, 'ResNet'))
        """
        scope, dot, rest = key.partition(".")
        return (scope, rest) if dot else (None, key)

    def with_fallback(self, fallback: Callable[[], Mapping[str, Factory]]) -> Self:
        """Set a function that returns further names; it is called only when a lookup needs it."""
        self._fallback = fallback
        return self

    def get(self, key: str) -> Factory | None:
        """Return the class of a name, or None."""
        if not isinstance(key, str):
            raise TypeError(f"The key argument of `Registry.get` must be a str, got {type(key)}")
        found = self._module_dict.get(key)
        if found is not None:
            return found
        scope, rest = self.split_scope_key(key)
        if scope is not None:
            # Before the locations: a name with a scope must not import the modules of another one.
            found = self._get_in(scope, rest)
            # A dumped config names classes by their path: type='torch.nn.Linear'.
            return found or cast("Factory | None", get_object_from_string(key))
        found = self._get_here(key)
        if found is None and self.parent is not None:
            return self.parent.get(key)
        return found

    def _get_here(self, key: str) -> Factory | None:
        while key not in self._module_dict and self._locations:
            import_module(self._locations.pop(0))  # Popped first: the module may look up names.
        return self._module_dict.get(key) or self._fallback().get(key)

    def _get_in(self, scope: str, key: str) -> Factory | None:
        if scope == self.scope:
            return self._get_here(key)
        _import_registries_of(scope)
        root = self.root
        if scope in self._children:
            return self._children[scope].get(key)
        if root is not self and (scope == root.scope or scope in root._children):
            return root._get_in(scope, key)
        return None

    def _search_child(self, scope: str) -> Registry | None:
        """Return the registry of a scope, at any depth below this one."""
        if self.scope == scope:
            return self
        below = (child._search_child(scope) for child in self._children.values())
        return next((found for found in below if found is not None), None)

    @contextmanager
    def switch_scope_and_registry(self, scope: str | None) -> Iterator[Registry]:
        """Yield the registry of a scope, which is the default one for a block of code.

        Args:
            scope: The project; None for the default scope.
        """
        with DefaultScope.overwrite_default_scope(scope):
            current = DefaultScope.get_current_instance()
            if current is None:
                yield self
                return
            root, name = self.root, current.scope_name
            if name != root.scope:
                _import_registries_of(name)
            found = root._search_child(name)
            if found is None:
                _warn_of_scope(name, self.scope)
            yield self if found is None else found

    def find(self, key: str, scope: str | None = None) -> Factory | None:
        """Return the class of a name in a project; by default that of the default scope."""
        with self.switch_scope_and_registry(scope) as registry:
            # A project may have no name of its own for what this registry holds.
            return registry.get(key) or self.get(key)

    def require(self, key: str, scope: str | None = None) -> Factory:
        """Return the class of a name; the error for an unknown name suggests the nearest one."""
        found = self.find(key, scope)
        if found is None and key in MISSING:
            raise KeyError(message_for(key))
        if found is None:
            names = sorted({*self._module_dict, *self._fallback()})
            raise KeyError(
                f"{key} is not in the {self.scope}::{self._name} registry.{nearest(key, names)} "
                "Is the module that registers it imported, for example with custom_imports?"
            )
        return found

    def build(self, cfg: object, *args: object, **kwargs: object) -> object:
        """Build the object of a config dict."""
        return self.build_func(cfg, *args, **kwargs, registry=self)

    def register_module(
        self,
        name: str | Sequence[str] | None = None,
        force: bool = False,
        module: T | None = None,
    ) -> T | Callable[[T], T]:
        """Register a class or function; without ``module``, return a decorator."""
        if not isinstance(force, bool):
            raise TypeError(f"force must be a boolean, but got {type(force)}")
        if not (name is None or is_seq_of(name, str)):
            raise TypeError(f"name must be None, a str or a sequence of str, got {type(name)}")
        if module is not None:
            return self._register(module, name, force=force)

        def decorate(module: T) -> T:
            return self._register(module, name, force=force)

        return decorate

    def _register(self, module: T, name: str | Sequence[str] | None, *, force: bool) -> T:
        if not callable(module):
            raise TypeError(f"module must be Callable, but got {type(module)}")
        names = [name] if isinstance(name, str) else name or [module.__name__]
        for entry in names:
            existing = self._module_dict.get(entry)
            if existing is not None and not force:
                raise KeyError(
                    f"{entry} is already registered in {self._name} at {existing.__module__}"
                )
            self._module_dict[entry] = module
        return module


def _scope_of(module: str) -> str:
    # Our package stands in for MMEngine's, whose name configs use as a scope.
    ours = __name__.removesuffix(".registry.registry")
    return "mmengine" if f"{module}.".startswith(f"{ours}.") else module.partition(".")[0]


def _import_registries_of(scope: str) -> None:
    """Import a project's module ``registry``, if there is one, which creates its registries."""
    if f"{scope}.registry" in sys.modules:
        return
    try:
        found = find_spec(f"{scope}.registry")
    except ModuleNotFoundError as error:
        # The project itself may be missing, but nothing that it imports.
        if error.name is not None and error.name.partition(".")[0] != scope:
            raise
        return
    if found is not None:
        import_module(f"{scope}.registry")


@cache
def _warn_of_scope(scope: str, used: str) -> None:
    _log.warning(
        "There is no registry of the scope '%s', so that of '%s' is used. Is its package "
        "installed, and its module `registry` imported?",
        scope,
        used,
    )
