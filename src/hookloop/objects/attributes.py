"""Turn the attributes of a user's object into a state for a checkpoint, and restore them.

A checkpoint holds tensors and plain containers. Other attributes (the data, a model) are not state
and are left alone.
"""

from __future__ import annotations

import random
from collections import deque
from functools import singledispatch
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

NO_STATE = object()
"""Returned for a value that a checkpoint cannot hold."""

MOST = 10_000_000
"""Elements of a container; a larger one is not saved."""

SCALARS = frozenset({bool, int, float, str, type(None)})
PLAIN = frozenset({list, tuple, dict})

GENERATOR_TYPES = (torch.Generator, np.random.Generator, np.random.RandomState, random.Random)

Array = np.ndarray[Any, Any]


# --- to a state --------------------------------------------------------------------------------


@singledispatch
def to_state(value: object) -> object:
    """Return a copy of a value in a form that a checkpoint can hold, or `NO_STATE`.

    >>> to_state({"a": [1, 2]}), to_state({3}), to_state(object()) is NO_STATE
    ({'a': [1, 2]}, [3], True)
    """
    # The exact type: an enum member is an int, but would come back as a plain one.
    return value if type(value) in SCALARS else NO_STATE


@to_state.register
def _(value: np.generic) -> object:
    return value.item()


@to_state.register
def _(value: Tensor) -> object:
    return value.detach().to("cpu", copy=True)


@to_state.register(np.ndarray)
def _(value: Array) -> object:
    try:
        return torch.from_numpy(value.copy())
    except (TypeError, ValueError):  # Text, objects, foreign bytes: torch has no type for them.
        return NO_STATE


@to_state.register
def _(value: torch.Generator) -> object:
    return value.get_state()


@to_state.register
def _(value: random.Random) -> object:
    return value.getstate()


@to_state.register
def _(value: np.random.Generator) -> object:
    return _as_tensors(value.bit_generator.state)


@to_state.register
def _(value: np.random.RandomState) -> object:
    return _as_tensors(value.get_state(legacy=False))


@to_state.register(set)
@to_state.register(frozenset)
@to_state.register(deque)
def _(value: Any) -> object:  # noqa: ANN401 - each of these
    return _parts_to_state(list(value), MOST)


@to_state.register(list)
@to_state.register(tuple)
def _(value: Any) -> object:  # noqa: ANN401 - each of these
    return _parts_to_state(value, MOST)


@to_state.register
def _(value: dict) -> object:  # type: ignore[type-arg]
    return _mapping_to_state(value, MOST)


def _nested_to_state(value: object, room: int) -> object:
    """Return the state of a part of a container.

    Parts are restored without the old value, so they must be of a type that needs none.
    """
    if type(value) is dict:
        return _mapping_to_state(value, room)
    if type(value) in PLAIN:
        return _parts_to_state(cast("list[object]", value), room)
    return (
        NO_STATE
        if isinstance(value, np.ndarray | torch.Generator | set | deque)
        else to_state(value)
    )


def _parts_to_state(values: list[object] | tuple[object, ...], room: int) -> object:
    if type(values) not in PLAIN or len(values) > room:
        return NO_STATE
    if _is_flat(values):
        return values if isinstance(values, tuple) else list(values)
    states: list[object] = []
    for value in values:
        state = _nested_to_state(value, room)
        if state is NO_STATE:  # All or nothing: a list with gaps would be another list.
            return NO_STATE
        room -= len(state) if isinstance(state, list | tuple | dict) else 1
        states.append(state)
    return tuple(states) if isinstance(values, tuple) else states


def _mapping_to_state(values: dict[object, object], room: int) -> object:
    if type(values) is not dict or not {type(key) for key in values} <= SCALARS:
        return NO_STATE
    parts = _parts_to_state(list(values.values()), room)
    if parts is NO_STATE:
        return NO_STATE
    return dict(zip(values, cast("list[object]", parts), strict=True))


# --- from a state ------------------------------------------------------------------------------


@singledispatch
def restore_state(old: object, state: object) -> object:
    """Return a value restored from its state: in place if others may refer to the same object.

    Args:
        old: The current value.
        state: What `to_state` returned for the value to restore.
    """
    # A copy: the checkpoint must not change when the object does.
    copied = to_state(state)
    return state if copied is NO_STATE else copied


@restore_state.register
def _(old: np.generic, state: object) -> object:
    return np.asarray(state, old.dtype)[()]


@restore_state.register(np.ndarray)
def _(old: Array, state: Tensor) -> object:
    new = state.numpy()
    if old.shape != new.shape or old.dtype != new.dtype or not old.flags.writeable:
        return new.copy()
    old[...] = new
    return old


@restore_state.register
def _(old: Tensor, state: Tensor) -> object:
    if old.shape != state.shape or old.dtype != state.dtype:
        return state.to(old.device, copy=True)
    with torch.no_grad():
        return old.copy_(state)


@restore_state.register
def _(old: torch.Generator, state: Tensor) -> object:
    return old.set_state(state)


@restore_state.register
def _(old: random.Random, state: tuple) -> object:  # type: ignore[type-arg]
    old.setstate((state[0], tuple(state[1]), state[2]))
    return old


@restore_state.register
def _(old: np.random.Generator, state: object) -> object:
    old.bit_generator.state = cast("Any", _as_arrays(state))
    return old


@restore_state.register
def _(old: np.random.RandomState, state: object) -> object:
    old.set_state(cast("Any", _as_arrays(state)))
    return old


@restore_state.register
def _(old: list, state: object) -> object:  # type: ignore[type-arg]
    if not isinstance(state, list):
        return state
    old[:] = cast("list[object]", to_state(state))
    return old


@restore_state.register(dict)
@restore_state.register(set)
def _(old: Any, state: object) -> object:  # noqa: ANN401 - each of these
    if not isinstance(state, dict | list):
        return state
    copied = to_state(state)
    old.clear()
    old.update(copied)
    return old


@restore_state.register
def _(old: deque, state: object) -> object:  # type: ignore[type-arg]
    if not isinstance(state, list):
        return state
    old.clear()
    old.extend(state)
    return old


@restore_state.register
def _(old: frozenset, state: object) -> object:  # type: ignore[type-arg]
    return frozenset(state) if isinstance(state, list) else state


# --- states ------------------------------------------------------------------------------------


def is_equal(one: object, other: object) -> bool:
    """Return whether two states are equal, tensors by all of their numbers."""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        one, other = (v if v.layout is torch.strided else v.to_dense() for v in (one, other))
        return one.dtype == other.dtype and torch.equal(one, other)
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        mapping = cast("dict[object, object]", other)
        return one.keys() == mapping.keys() and all(is_equal(one[k], mapping[k]) for k in one)
    if isinstance(one, list | tuple) and not _is_flat(one):
        sequence = cast("list[object]", other)
        return len(one) == len(sequence) and all(map(is_equal, one, sequence))
    return bool(one == other or (one != one and other != other))  # Or both are NaN.


def _is_flat(values: list[object] | tuple[object, ...]) -> bool:
    # Most lists of a sampler are long and flat, and a set of their types is made quickly.
    return {type(value) for value in values} <= SCALARS


def _as_tensors(state: object) -> object:
    if isinstance(state, dict):
        return {key: _as_tensors(part) for key, part in state.items()}
    return torch.from_numpy(state.copy()) if isinstance(state, np.ndarray) else state


def _as_arrays(state: object) -> object:
    if isinstance(state, dict):
        return {key: _as_arrays(part) for key, part in state.items()}
    return state.numpy() if isinstance(state, Tensor) else state
