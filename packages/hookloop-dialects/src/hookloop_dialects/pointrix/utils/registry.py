"""``pointrix.utils.registry``: classes by name, for a project's own registries."""

from __future__ import annotations

from collections.abc import Iterable

from hookloop.dialects import Names

_NOTHING: dict[str, str] = {}


class Registry(Names):
    """Classes by name: ``@REGISTRY.register()``.

    Args:
        name: The registry's name in messages.
        modules: Not used: a file that registers classes is imported by the project.
    """

    def __init__(self, name: str, modules: Iterable[str] = ()) -> None:
        super().__init__(name, f"{__name__}:_NOTHING")
