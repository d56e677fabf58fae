"""``mmengine.utils.misc``: the small functions that hook files import from there."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

from hookloop_mmengine.utils.path import mkdir_or_exist

__all__ = ["get_object_from_string", "is_list_of", "is_seq_of", "is_tuple_of", "mkdir_or_exist"]


def is_seq_of(
    seq: object, expected_type: type | tuple[type, ...], seq_type: type | None = None
) -> bool:
    """Return whether a value is a sequence whose entries are all of a type."""
    kind = seq_type or Sequence
    return isinstance(seq, kind) and all(isinstance(entry, expected_type) for entry in seq)  # type: ignore[attr-defined]


def is_list_of(seq: object, expected_type: type | tuple[type, ...]) -> bool:
    """Return whether a value is a list of a type."""
    return is_seq_of(seq, expected_type, list)


def is_tuple_of(seq: object, expected_type: type | tuple[type, ...]) -> bool:
    """Return whether a value is a tuple of a type."""
    return is_seq_of(seq, expected_type, tuple)


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
