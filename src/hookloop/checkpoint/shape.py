"""What the parts of a checkpoint look like, so that a crafted one is rejected with the place.

A shape is a function that returns whether a value fits; a mapping from names to shapes, of which
those that end in ``?`` may be missing; or one of the classes below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

LARGEST = 1 << 53


@dataclass(frozen=True)
class Each:
    """A list or tuple of values of one shape, so many if a number is given."""

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


def misfit(value: object, shape: object, path: str) -> str | None:
    """Return where a value is not of a shape; None if it is.

    >>> misfit({"iter": -1}, {"iter": is_count}, "progress")
    'progress.iter'
    >>> misfit({"iter": 3}, {"iter": is_count, "note?": is_text}, "progress")
    """
    if isinstance(shape, Maybe):
        return None if value is None else misfit(value, shape.shape, path)
    if callable(shape):
        return None if shape(value) else path
    parts = _parts(value, shape, path)
    if isinstance(parts, str):
        return parts
    return next((found for found in (misfit(v, s, p) for p, v, s in parts) if found), None)


def check_state(state: object, shape: object) -> None:
    """Reject a state that is not of a shape."""
    if found := misfit(state, shape, "state"):
        raise ValueError(f"'{found}' is not what was saved")


def _parts(value: object, shape: object, path: str) -> list[tuple[str, object, object]] | str:
    """Return what is in a value with its shape, or the path where something is wrong."""
    if isinstance(shape, Each):
        if not isinstance(value, list | tuple) or shape.count not in (None, len(value)):
            return path
        return [(f"{path}[{index}]", one, shape.shape) for index, one in enumerate(value)]
    if not isinstance(value, Mapping):
        return path
    if isinstance(shape, Named):
        named = [(f"{path}.{name}", one, shape.shape) for name, one in value.items()]
        return named if all(isinstance(name, str) for name in value) else path
    assert isinstance(shape, Mapping)
    keys = {name.removesuffix("?"): name for name in shape}
    lacking = [key for key, name in keys.items() if key == name and key not in value]
    found = [(f"{path}.{k}", value[k], shape[name]) for k, name in keys.items() if k in value]
    return f"{path}.{lacking[0]}" if lacking else found


def is_alike(value: object, own: object) -> bool:
    """Return whether a value could be another state of what ``own`` is a state of."""
    is_open = own is None or (isinstance(own, str | list | tuple | set) and not own)
    if is_open or (isinstance(own, float) and value is None):  # Such as a best value before any.
        return True
    if isinstance(own, Mapping):
        return isinstance(value, Mapping) and all(
            is_alike(value[name], inner) for name, inner in own.items() if name in value
        )
    if isinstance(own, int | float) and not isinstance(own, bool):
        # The words of a generator may be larger than what is counted.
        return is_number(value) or (abs(own) >= LARGEST and type(value) is int)
    if isinstance(own, Tensor):
        return isinstance(value, Tensor) and value.dtype == own.dtype
    if isinstance(own, list):
        return isinstance(value, list | tuple) and all(
            any(is_alike(one, known) for known in own) for one in value
        )
    return isinstance(value, list | tuple if isinstance(own, tuple) else type(own))


def is_count(value: object) -> bool:
    """Return whether a value counts something."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < LARGEST


def is_number(value: object) -> bool:
    """Return whether a value is a number that computing with it cannot break."""
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
    """Return whether a value is the state of one of torch's generators."""
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
    """Make a shape of the values that there are."""
    return lambda value: type(value) in {type(one) for one in options} and value in options
