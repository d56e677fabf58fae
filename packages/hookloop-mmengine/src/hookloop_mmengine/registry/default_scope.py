"""``mmengine.registry.DefaultScope``: the project whose registries are searched first."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

from hookloop_mmengine.utils.manager import ManagerMixin

_numbers = itertools.count()


class DefaultScope(ManagerMixin):
    """The project whose registries are searched first; the newest one counts.

    Args:
        name: The name by which `get_instance` finds this scope.
        scope_name: The name of the project.
    """

    def __init__(self, name: str, scope_name: str) -> None:
        super().__init__(name)
        if not isinstance(scope_name, str):
            raise AssertionError(f"scope_name should be a string, but got {scope_name}")
        self._scope_name = scope_name

    @property
    def scope_name(self) -> str:
        """The name of the project."""
        return self._scope_name

    @classmethod
    def get_instance(cls, name: str, **kwargs: object) -> DefaultScope:
        """Return the scope of a name; with ``scope_name`` it is made, and is the current one."""
        # Two runners that start within one second have the same name, and each needs its scope.
        if "scope_name" in kwargs:
            cls._instance_dict.pop(name, None)
        return super().get_instance(name, **kwargs)

    @classmethod
    def get_current_instance(cls) -> DefaultScope | None:  # type: ignore[override]
        """Return the newest scope, or None if there is none."""
        return super().get_current_instance() if cls._instance_dict else None

    @classmethod
    @contextmanager
    def overwrite_default_scope(cls, scope_name: str | None) -> Iterator[None]:
        """Let another scope be the current one for a block of code; None changes nothing."""
        if scope_name is None:
            yield
            return
        before = dict(cls._instance_dict)
        cls.get_instance(f"overwrite-{next(_numbers)}", scope_name=scope_name)
        try:
            yield
        finally:
            cls._instance_dict = before


def init_default_scope(scope: str) -> None:
    """Make a scope the current one."""
    DefaultScope.get_instance(scope, scope_name=scope)
