"""Attributes of a user's object in a form that a checkpoint can hold, and their way back.

A checkpoint holds tensors and plain containers. What else an object has (its data, its model) is
not its state, and is left alone.
"""

from __future__ import annotations

import random
from collections import deque
from functools import singledispatch
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

NOTHING = object()
"""In place of what cannot be kept."""

MOST = 10_000_000
"""Elements of a container; one that is larger is not kept."""

SCALARS = frozenset({bool, int, float, str, type(None)})
PLAIN = frozenset({list, tuple, dict})

GENERATORS = (torch.Generator, np.random.Generator, np.random.RandomState, random.Random)

Array = np.ndarray[Any, Any]


# --- the way in --------------------------------------------------------------------------------


@singledispatch
def keep(value: object) -> object:
    """Return a copy of a value that a checkpoint can hold, or `NOTHING`.

    >>> keep({"a": [1, 2]}), keep({3}), keep(object()) is NOTHING
    ({'a': [1, 2]}, [3], True)
    """
    return value if type(value) in SCALARS else NOTHING


@keep.register
def _(value: np.generic) -> object:
    return value.item()


@keep.register
def _(value: Tensor) -> object:
    return value.detach().to("cpu", copy=True)


@keep.register(np.ndarray)
def _(value: Array) -> object:
    try:
        return torch.from_numpy(value.copy())
    except TypeError:  # Texts, objects: torch has no such numbers.
        return NOTHING


@keep.register
def _(value: torch.Generator) -> object:
    return value.get_state()


@keep.register
def _(value: random.Random) -> object:
    return value.getstate()


@keep.register
def _(value: np.random.Generator) -> object:
    return _as_tensors(value.bit_generator.state)


@keep.register
def _(value: np.random.RandomState) -> object:
    return _as_tensors(value.get_state(legacy=False))


@keep.register(set)
@keep.register(frozenset)
@keep.register(deque)
def _(value: Any) -> object:  # noqa: ANN401 - each of these
    return _keep_parts(list(value), MOST)


@keep.register(list)
@keep.register(tuple)
def _(value: Any) -> object:  # noqa: ANN401 - each of these
    return _keep_parts(value, MOST)


@keep.register
def _(value: dict) -> object:  # type: ignore[type-arg]
    return _keep_mapping(value, MOST)


def _keep_nested(value: object, room: int) -> object:
    """Keep a part of a container, which has to be of a kind that comes back by itself."""
    if type(value) is dict:
        return _keep_mapping(value, room)
    if type(value) in PLAIN:
        return _keep_parts(cast("list[object]", value), room)
    return NOTHING if isinstance(value, np.ndarray | torch.Generator | set | deque) else keep(value)


def _keep_parts(values: list[object] | tuple[object, ...], room: int) -> object:
    if type(values) not in PLAIN or len(values) > room:
        return NOTHING
    if _is_flat(values):
        return values if isinstance(values, tuple) else list(values)
    kept: list[object] = []
    for value in values:
        one = _keep_nested(value, room)
        if one is NOTHING:
            return NOTHING
        room -= len(one) if isinstance(one, list | tuple | dict) else 1
        kept.append(one)
    return tuple(kept) if isinstance(values, tuple) else kept


def _keep_mapping(values: dict[object, object], room: int) -> object:
    if type(values) is not dict or not {type(key) for key in values} <= SCALARS:
        return NOTHING
    parts = _keep_parts(list(values.values()), room)
    if parts is NOTHING:
        return NOTHING
    return dict(zip(values, cast("list[object]", parts), strict=True))


# --- the way back ------------------------------------------------------------------------------


@singledispatch
def give_back(old: object, kept: object) -> object:
    """Return a kept value as what it was: in place, where others may hold the same object.

    Args:
        old: What is there now.
        kept: What `keep` made of the value that was there.
    """
    copied = keep(kept)  # What is kept is to stay as it is while the object changes.
    return kept if copied is NOTHING else copied


@give_back.register
def _(old: np.generic, kept: object) -> object:
    return np.asarray(kept, old.dtype)[()]


@give_back.register(np.ndarray)
def _(old: Array, kept: Tensor) -> object:
    new = kept.numpy()
    if old.shape != new.shape or old.dtype != new.dtype or not old.flags.writeable:
        return new.copy()
    old[...] = new
    return old


@give_back.register
def _(old: Tensor, kept: Tensor) -> object:
    if old.shape != kept.shape or old.dtype != kept.dtype:
        return kept.to(old.device, copy=True)
    with torch.no_grad():
        return old.copy_(kept)


@give_back.register
def _(old: torch.Generator, kept: Tensor) -> object:
    return old.set_state(kept)


@give_back.register
def _(old: random.Random, kept: tuple) -> object:  # type: ignore[type-arg]
    old.setstate((kept[0], tuple(kept[1]), kept[2]))
    return old


@give_back.register
def _(old: np.random.Generator, kept: object) -> object:
    old.bit_generator.state = cast("Any", _as_arrays(kept))
    return old


@give_back.register
def _(old: np.random.RandomState, kept: object) -> object:
    old.set_state(cast("Any", _as_arrays(kept)))
    return old


@give_back.register
def _(old: list, kept: object) -> object:  # type: ignore[type-arg]
    if not isinstance(kept, list):
        return kept
    old[:] = cast("list[object]", keep(kept))
    return old


@give_back.register(dict)
@give_back.register(set)
def _(old: Any, kept: object) -> object:  # noqa: ANN401 - each of these
    if not isinstance(kept, dict | list):
        return kept
    copied = keep(kept)
    old.clear()
    old.update(copied)
    return old


@give_back.register
def _(old: deque, kept: object) -> object:  # type: ignore[type-arg]
    if not isinstance(kept, list):
        return kept
    old.clear()
    old.extend(kept)
    return old


@give_back.register
def _(old: frozenset, kept: object) -> object:  # type: ignore[type-arg]
    return frozenset(kept) if isinstance(kept, list) else kept


# --- in between --------------------------------------------------------------------------------


def is_same(one: object, other: object) -> bool:
    """Return whether two kept values are equal, tensors bit for bit."""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        its = cast("dict[object, object]", other)
        return one.keys() == its.keys() and all(is_same(one[key], its[key]) for key in one)
    if isinstance(one, list | tuple) and not _is_flat(one):
        theirs = cast("list[object]", other)
        return len(one) == len(theirs) and all(map(is_same, one, theirs))
    return bool(one == other or (one != one and other != other))  # Or neither is a number.


def _is_flat(values: list[object] | tuple[object, ...]) -> bool:
    return {type(one) for one in values} <= SCALARS


def _as_tensors(state: object) -> object:
    if isinstance(state, dict):
        return {key: _as_tensors(part) for key, part in state.items()}
    return torch.from_numpy(state.copy()) if isinstance(state, np.ndarray) else state


def _as_arrays(state: object) -> object:
    if isinstance(state, dict):
        return {key: _as_arrays(part) for key, part in state.items()}
    return state.numpy() if isinstance(state, Tensor) else state
