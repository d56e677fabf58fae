"""``imix.utils.registry``: classes by name, and how one is made from a config."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from hookloop.errors import nearest

Kind = TypeVar("Kind", bound=type)


class Registry:
    """Classes by name.

    Args:
        name: The registry's name in messages.
    """

    def __init__(self, name: str) -> None:
        self.module_name = name
        self.module_dict: dict[str, type] = {}

    def register_module(
        self, name: str | None = None, module: type | None = None
    ) -> Callable[[Kind], Kind] | None:
        """Register a class, as a decorator or given as ``module``.

        As in iMIX, only the second form reads ``name``.
        """
        if module is not None:
            self._add(name or module.__name__, module)
            return None

        def add(kind: Kind) -> Kind:
            self._add(kind.__name__, kind)
            return kind

        return add

    def _add(self, name: str, kind: type) -> None:
        assert isinstance(kind, type), f"{kind!r} is not a class"
        assert name not in self.module_dict, f"'{name}' is registered in {self.module_name} already"
        self.module_dict[name] = kind

    def get(self, name: str) -> type:
        """Return a class; the `KeyError` for an unknown one suggests the nearest name."""
        if name not in self.module_dict:
            suggestion = nearest(name, self.module_dict)
            raise KeyError(f"'{name}' is not registered in {self.module_name}.{suggestion}")
        return self.module_dict[name]

    def __contains__(self, name: str) -> bool:
        return name in self.module_dict

    def __len__(self) -> int:
        return len(self.module_dict)


def build_from_cfg(
    cfg: Mapping[str, Any], registry: Registry, default_args: Mapping[str, Any] | None = None
) -> Any:  # noqa: ANN401 - an object of any class
    """Make an object from ``dict(type="Name", ...)``."""
    if "type" not in cfg:
        raise KeyError(f"the config of a {registry.module_name} has no 'type': {dict(cfg)}")
    arguments = {**(default_args or {}), **cfg}
    kind = arguments.pop("type")
    make = registry.get(kind) if isinstance(kind, str) else kind
    if not isinstance(make, type):
        raise TypeError(f"'type' is a name or a class, not {make!r}")
    return make(**arguments)
