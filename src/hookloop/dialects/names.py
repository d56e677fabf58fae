"""`Names`: a registry of hook classes as iMIX and Pointrix have one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TypeVar

from hookloop.errors import nearest

Kind = TypeVar("Kind", bound=type)


class Names:
    """Hook classes by name: those that were registered, then those of the dialect's catalogue.

    Args:
        title: What messages call it.
        catalogue: Where the dialect's own hooks are, as ``module:NAME`` of a mapping.
    """

    def __init__(self, title: str, catalogue: str) -> None:
        self.name = title
        self._catalogue = catalogue
        self._registered: dict[str, type] = {}

    def register(self, obj: Kind | None = None) -> Kind | Callable[[Kind], Kind]:
        """Register a class under its name: ``@HOOK_REGISTRY.register()``."""

        def add(kind: Kind) -> Kind:
            taken = self._registered.get(kind.__name__)
            # A file that is loaded twice registers its classes twice.
            assert taken is None or _place(taken) == _place(kind), (
                f"'{kind.__name__}' is registered in {self.name} already"
            )
            self._registered[kind.__name__] = kind
            return kind

        return add if obj is None else add(obj)

    def register_module(self, name: str | None = None) -> Callable[[Kind], Kind]:
        """Register a class under its name: ``@HOOKS.register_module()``; ``name`` is ignored."""
        return self.register()  # type: ignore[return-value]

    def get(self, name: str) -> type:
        """Return a class; a `KeyError` names the nearest."""
        if name in self._registered:
            return self._registered[name]
        known = self._own()
        if name not in known:
            options = [*self._registered, *known]
            raise KeyError(f"'{name}' is not registered in {self.name}.{nearest(name, options)}")
        return self.own(name)

    def own(self, name: str) -> type:
        """Return a class of the dialect's catalogue."""
        module, attribute = self._own()[name].split(":")
        found: type = getattr(import_module(module), attribute)
        return found

    def __contains__(self, name: str) -> bool:
        return name in self._registered or name in self._own()

    def _own(self) -> Mapping[str, str]:
        module, attribute = self._catalogue.split(":")
        found: Mapping[str, str] = getattr(import_module(module), attribute)
        return found


def _place(kind: type) -> tuple[str, str]:
    return kind.__module__, kind.__qualname__
