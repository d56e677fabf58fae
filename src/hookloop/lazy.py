"""Public names that are imported when they are first used.

``import hookloop`` takes milliseconds and does not import torch; each name costs its own imports,
once.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path


def load_name(namespace: dict[str, object], module: str, name: str) -> object:
    """Import a name from the module that defines it, and keep it in a package's namespace.

    The module may be followed by the name that it has there: ``module:name``.
    """
    module, _, other = module.partition(":")
    value: object = getattr(import_module(module), other or name)
    namespace[name] = value  # The next access finds it there, without `__getattr__`.
    return value


def module_in_rooms(package: str, path: Iterable[str], name: str) -> str:
    """Return the full name of a module that is in one of the folders of a package.

    Args:
        package: The package.
        path: Its ``__path__``.
        name: The name of the module alone, which only one of the folders has.
    """
    found = next(file for folder in path for file in Path(folder).glob(f"*/{name}.py"))
    return f"{package}.{found.parent.name}.{name}"
