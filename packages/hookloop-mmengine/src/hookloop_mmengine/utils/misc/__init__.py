"""``mmengine.utils.misc``: the small functions that hook files import from there."""

from __future__ import annotations

import warnings
from importlib import import_module
from types import ModuleType

from hookloop_mmengine.utils.path import mkdir_or_exist, scandir
from hookloop_mmengine.utils.requirements import (
    check_prerequisites,
    deprecated_api_warning,
    deprecated_function,
    requires_executable,
    requires_package,
)
from hookloop_mmengine.utils.sequences import (
    apply_to,
    concat_list,
    is_list_of,
    is_seq_of,
    is_tuple_of,
    iter_cast,
    list_cast,
    slice_list,
    to_1tuple,
    to_2tuple,
    to_3tuple,
    to_4tuple,
    to_ntuple,
    tuple_cast,
)

__all__ = [
    "apply_to",
    "check_prerequisites",
    "concat_list",
    "deprecated_api_warning",
    "deprecated_function",
    "get_object_from_string",
    "has_method",
    "import_modules_from_strings",
    "is_list_of",
    "is_method_overridden",
    "is_seq_of",
    "is_str",
    "is_tuple_of",
    "iter_cast",
    "list_cast",
    "mkdir_or_exist",
    "requires_executable",
    "requires_package",
    "scandir",
    "slice_list",
    "to_1tuple",
    "to_2tuple",
    "to_3tuple",
    "to_4tuple",
    "to_ntuple",
    "tuple_cast",
]


def is_str(x: object) -> bool:
    """Return whether a value is a string."""
    return isinstance(x, str)


def has_method(obj: object, method: str) -> bool:
    """Return whether an object has a method."""
    return callable(getattr(obj, method, None))


def is_method_overridden(method: str, base_class: type, derived_class: object) -> bool:
    """Return whether a class, or that of an object, has a method of its own."""
    if not isinstance(base_class, type):
        raise AssertionError("base_class doesn't accept instance, Please pass class instead.")
    derived = derived_class if isinstance(derived_class, type) else type(derived_class)
    return bool(getattr(derived, method) != getattr(base_class, method))


def import_modules_from_strings(
    imports: str | list[str] | None, allow_failed_imports: bool = False
) -> ModuleType | list[ModuleType | None] | None:
    """Import one module or several and return them.

    Args:
        imports: The name of a module, or a list of names.
        allow_failed_imports: Whether None stands for a module that cannot be imported.
    """
    if not imports:
        return None
    if isinstance(imports, str):
        return _imported(imports, allow_failed_imports)
    if not isinstance(imports, list):
        raise TypeError(f"custom_imports must be a list but got type {type(imports)}")
    return [_imported(name, allow_failed_imports) for name in imports]


def _imported(name: str, may_fail: bool) -> ModuleType | None:
    if not isinstance(name, str):
        raise TypeError(f"{name} is of type {type(name)} and cannot be imported.")
    try:
        return import_module(name)
    except ImportError as error:
        if not may_fail:
            # The reason as well, which MMEngine leaves out.
            raise ImportError(f"Failed to import {name}: {error}") from error
        warnings.warn(f"{name} failed to import and is ignored.", UserWarning, stacklevel=3)
        return None


def get_object_from_string(obj_name: str) -> object:
    """Return the object that a dotted path names, or None if there is none."""
    parts = obj_name.split(".")
    found: object = None
    for index, name in enumerate(parts):
        inner = getattr(found, name, None)
        # An attribute wins over a submodule of its name: mmcv.ops.nms is the function.
        if inner is None or isinstance(inner, ModuleType):
            if index and not isinstance(found, ModuleType):
                return None
            try:
                inner = import_module(".".join(parts[: index + 1]))
            except ImportError:
                return None
        found = inner
    return found
