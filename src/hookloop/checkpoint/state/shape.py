"""Describe what the parts of a checkpoint look like, and find the entry that is wrong.

A shape is a function that returns whether a value fits; a mapping from names to shapes, where
names that end in ``?`` may be missing; or one of the classes below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

# Above this a float does not hold every integer.
LARGEST = 1 << 53


@dataclass(frozen=True)
class Each:
    """A list or tuple of values of one shape, of this length if ``count`` is given."""

    shape: object
    count: int | None = None


@dataclass(frozen=True)
class Named:
    """A mapping from names to values of one shape."""

    shape: object


@dataclass(frozen=True)
class Maybe:
    """A shape, or None."""

    shape: object


def find_mismatch(value: object, shape: object, path: str) -> str | None:
    """Return the path at which a value does not fit a shape; None if it fits.

    >>> find_mismatch({"iter": -1}, {"iter": is_count}, "progress")
    'progress.iter'
    >>> find_mismatch({"iter": 3}, {"iter": is_count, "note?": is_text}, "progress")
    """
    if isinstance(shape, Maybe):
        return None if value is None else find_mismatch(value, shape.shape, path)
    if callable(shape):
        return None if shape(value) else path
    parts = _parts(value, shape, path)
    if isinstance(parts, str):
        return parts
    return next((found for found in (find_mismatch(v, s, p) for p, v, s in parts) if found), None)


def check_state(state: object, shape: object) -> None:
    """Reject a state that does not fit a shape."""
    if found := find_mismatch(state, shape, "state"):
        raise ValueError(f"'{found}' is missing or has the wrong type or value")


def _parts(value: object, shape: object, path: str) -> list[tuple[str, object, object]] | str:
    """Return the parts of a value, each with its shape, or the path where something is wrong."""
    if isinstance(shape, Each):
        if not isinstance(value, list | tuple) or shape.count not in (None, len(value)):
            return path
        return [(f"{path}[{index}]", part, shape.shape) for index, part in enumerate(value)]
    if not isinstance(value, Mapping):
        return path
    if isinstance(shape, Named):
        named = [(f"{path}.{name}", part, shape.shape) for name, part in value.items()]
        return named if all(isinstance(name, str) for name in value) else path
    assert isinstance(shape, Mapping)
    keys = {name.removesuffix("?"): name for name in shape}
    missing = [key for key, name in keys.items() if key == name and key not in value]
    # Entries that the shape does not mention pass: a later version may have written more.
    found = [(f"{path}.{k}", value[k], shape[name]) for k, name in keys.items() if k in value]
    return f"{path}.{missing[0]}" if missing else found


def has_same_form(value: object, own: object) -> bool:
    """Return whether a value could be another state of the object that has the state ``own``."""
    # None and empty containers say nothing of what they may hold later. A float may become None
    # again, such as a best value that is not known yet.
    is_open = own is None or (isinstance(own, str | list | tuple | set) and not own)
    if is_open or (isinstance(own, float) and value is None):
        return True
    if isinstance(own, Mapping):
        return isinstance(value, Mapping) and all(
            has_same_form(value[name], inner) for name, inner in own.items() if name in value
        )
    if isinstance(own, int | float) and not isinstance(own, bool):
        # The words of a random generator may be larger than any counter.
        return is_number(value) or (abs(own) >= LARGEST and type(value) is int)
    if isinstance(own, Tensor):
        return isinstance(value, Tensor) and value.dtype == own.dtype
    if isinstance(own, list):
        return isinstance(value, list | tuple) and all(
            any(has_same_form(entry, own_entry) for own_entry in own) for entry in value
        )
    return isinstance(value, list | tuple if isinstance(own, tuple) else type(own))


def is_count(value: object) -> bool:
    """Return whether a value is a count: an integer that is not negative."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < LARGEST


def is_number(value: object) -> bool:
    """Return whether a value is a number that is safe to compute with."""
    if isinstance(value, bool):
        return False
    return isinstance(value, float) or (isinstance(value, int) and abs(value) < LARGEST)


def is_flag(value: object) -> bool:
    """Return whether a value is true or false."""
    return isinstance(value, bool)


def is_text(value: object) -> bool:
    """Return whether a value is text."""
    return isinstance(value, str)


def is_bytes(value: object) -> bool:
    """Return whether a value could be the state of one of torch's generators."""
    return isinstance(value, Tensor) and value.dtype == torch.uint8 and value.ndim == 1


def is_tensor(value: object) -> bool:
    """Return whether a value is a tensor."""
    return isinstance(value, Tensor)


def is_scalar(value: object) -> bool:
    """Return whether a value is a tensor with one number."""
    return isinstance(value, Tensor) and value.numel() == 1


def is_mapping(value: object) -> bool:
    """Return whether a value is a mapping."""
    return isinstance(value, Mapping)


def one_of(*options: object) -> Callable[[object], bool]:
    """Return a shape that accepts only these values."""
    # The type first: `in` would compare 1 and True as equal, and a tensor cannot be compared so.
    return lambda value: type(value) in {type(one) for one in options} and value in options
