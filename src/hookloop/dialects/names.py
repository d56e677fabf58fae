"""`Names`: a registry of hook classes, as several systems have one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar, cast

from hookloop.dialects.lazy import import_name
from hookloop.errors import nearest

Kind = TypeVar("Kind", bound=type)


class Names:
    """Hook classes by name: the registered ones first, then those of the dialect's catalogue.

    Args:
        title: The registry's name in messages.
        catalogue: Path of the mapping with the dialect's own hooks, ``module:NAME``. It is a path
            because the catalogue imports the modules that create registries.
    """

    def __init__(self, title: str, catalogue: str) -> None:
        self.name = title
        self._catalogue = catalogue
        self._registered: dict[str, type] = {}

    def register(self, obj: Kind | None = None) -> Kind | Callable[[Kind], Kind]:
        """Register a class under its name: ``@HOOK_REGISTRY.register()``."""

        def add(kind: Kind) -> Kind:
            earlier = self._registered.get(kind.__name__)
            # A file that is loaded twice registers its classes twice.
            assert earlier is None or _qualified_name(earlier) == _qualified_name(kind), (
                f"'{kind.__name__}' is registered in {self.name} already"
            )
            self._registered[kind.__name__] = kind
            return kind

        return add if obj is None else add(obj)

    def register_module(self, name: str | None = None) -> Callable[[Kind], Kind]:
        """Register a class under its name: ``@HOOKS.register_module()``.

        ``name`` is ignored: the class has a name.
        """
        return self.register()  # type: ignore[return-value]

    def get(self, name: str) -> type:
        """Return a class; the `KeyError` for an unknown one suggests the nearest name."""
        # Registered classes win, so that a user can replace a hook of the catalogue.
        if name in self._registered:
            return self._registered[name]
        own = self._own()
        if name not in own:
            options = [*self._registered, *own]
            raise KeyError(f"'{name}' is not registered in {self.name}.{nearest(name, options)}")
        return cast("type", import_name(own[name]))

    def __contains__(self, name: str) -> bool:
        return name in self._registered or name in self._own()

    def _own(self) -> Mapping[str, str]:
        return cast("Mapping[str, str]", import_name(self._catalogue))


def _qualified_name(kind: type) -> tuple[str, str]:
    return kind.__module__, kind.__qualname__
