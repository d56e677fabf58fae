"""``emloop.utils.reflection``: find classes by the names of their modules."""

from __future__ import annotations

import logging
import pkgutil
from collections.abc import Iterable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any

_log = logging.getLogger()  # emloop logs with the root logger.

_EMPTY_DICT: Mapping[str, Any] = MappingProxyType({})


def parse_fully_qualified_name(fq_name: str) -> tuple[str | None, str]:
    """Split a name into its module, None if it has none, and its class.

    >>> parse_fully_qualified_name("a.b.C"), parse_fully_qualified_name("C")
    (('a.b', 'C'), (None, 'C'))
    """
    module, _, name = fq_name.rpartition(".")
    return module or None, name


def get_attribute(module_name: str, attribute_name: str) -> Any:  # noqa: ANN401 - anything
    """Return what a module has under a name."""
    return getattr(import_module(module_name), attribute_name)


def create_object(
    module_name: str,
    class_name: str,
    args: Iterable[Any] = (),
    kwargs: Mapping[str, Any] = _EMPTY_DICT,
) -> Any:  # noqa: ANN401 - an object of any class
    """Make an object of a class, given by its module and name."""
    return get_attribute(module_name, class_name)(*args, **kwargs)


def list_submodules(module_name: str) -> list[str]:
    """Return the full names of the modules in a package."""
    path = import_module(module_name).__path__
    return [f"{module_name}.{module.name}" for module in pkgutil.iter_modules(path)]


def find_class_module(
    module_name: str, class_name: str
) -> tuple[list[str], list[tuple[str, Exception]]]:
    """Return the modules of a package that have a class, and those that cannot be imported."""
    found: list[str] = []
    broken: list[tuple[str, Exception]] = []
    for name in list_submodules(module_name):
        try:
            if hasattr(import_module(name), class_name):
                found.append(name)
        except Exception as error:  # noqa: BLE001 - it is returned
            broken.append((name, error))
    return found, broken


def get_class_module(module_name: str, class_name: str) -> str | None:
    """Return the module of a package that has a class, or None.

    Raises:
        ValueError: If there are several such classes.
    """
    found, broken = find_class_module(module_name, class_name)
    for name, error in broken:
        _log.warning("'%s' cannot be imported: %s: %s.", name, type(error).__name__, error)
    if len({id(get_attribute(name, class_name)) for name in found}) > 1:
        raise ValueError(f"Several modules have a '{class_name}': {', '.join(found)}. Name one.")
    return found[0] if found else None
