"""Public names that are imported when they are first used.

``import hookloop`` takes milliseconds and does not import torch; each name costs its own imports,
once.
"""

from __future__ import annotations

from importlib import import_module


def load_name(namespace: dict[str, object], module: str, name: str) -> object:
    """Import a name from the module that defines it, and keep it in a package's namespace."""
    value: object = getattr(import_module(module), name)
    namespace[name] = value  # The next access finds it there, without `__getattr__`.
    return value
