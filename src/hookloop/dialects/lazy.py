"""Names that are imported when they are first used.

A catalogue has dozens of hooks, and a config uses three. Importing the others would cost time and
would require packages such as matplotlib that only one hook needs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from hookloop.lazy import load_name


def import_name(path: str) -> Any:  # noqa: ANN401 - whatever the path leads to
    """Import the object at a path ``module:name``.

    >>> import_name("collections:OrderedDict")
    <class 'collections.OrderedDict'>
    """
    module, name = path.split(":")
    return getattr(import_module(module), name)


def lazy_names(
    package: str, modules: Mapping[str, str], offered: Sequence[str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and ``__dir__`` of a package with lazy names.

    Args:
        package: The package, ``__name__``.
        modules: The module of each lazy name, by its full path.
        offered: All names of the package, ``__all__``.
    """

    def get(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        return load_name(vars(sys.modules[package]), modules[name], name)

    return get, lambda: list(offered)
