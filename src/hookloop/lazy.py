"""Public names that are imported when they are first used.

``import hookloop`` takes milliseconds and does not import torch; each name costs its own imports,
once.
"""

from __future__ import annotations

from importlib import import_module


def load_name(namespace: dict[str, object], module: str, name: str) -> object:
    """Import a name from the module that defines it, and keep it in a package's namespace.

    The module may be followed by the name that it has there: ``module:name``.
    """
    module, _, other = module.partition(":")
    value: object = getattr(import_module(module), other or name)
    namespace[name] = value  # The next access finds it there, without `__getattr__`.
    return value
