"""Values in the forms that a checkpoint can hold, and back.

A checkpoint holds tensors and plain containers; other attributes (the data, a model) are left
alone. A *state* says nothing of its type and is put into the value that is there, as that of a
sampler. A *value* says what it is and needs none there: what was None when the script began may be
a deque of arrays later.
"""

from __future__ import annotations

import random
from array import array
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterable, Mapping
from enum import Enum
from pathlib import Path, PurePath
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn.parameter import is_lazy

NO_STATE = object()
"""Returned for a value that a checkpoint cannot hold."""

MOST = 10_000_000
"""Elements of a container; a larger one is not saved."""

SCALARS = frozenset({bool, int, float, str, type(None)})

GENERATOR_TYPES = (torch.Generator, np.random.Generator, np.random.RandomState, random.Random)

KIND = "#kind"
"""The key of a mapping that stands for a value of another type."""

CONTAINERS = frozenset({list, tuple, dict})

PLAIN = SCALARS | {bytes, complex, torch.dtype, torch.device}
"""Types that a file holds as they are."""

MAPPINGS: tuple[type, ...] = (dict, OrderedDict, defaultdict, Counter)
SEQUENCES: tuple[type, ...] = (list, tuple, set, frozenset, deque)

OWN_KINDS: tuple[type, ...] = (dict, list, set, deque)
"""What a user's class may extend and still be restored in place, if it adds no attributes."""

FACTORIES = {kind.__name__: kind for kind in (int, float, bool, str, list, dict, set)}
"""What a `defaultdict` may be built with."""


class CannotRestoreError(Exception):
    """A saved value that does not fit what the script has in its place."""


def container_of(value: object) -> type | None:
    """Return the kind of container that a value is, or None; its class may be a user's own.

    >>> container_of([1]), container_of(1)
    (<class 'list'>, None)
    """
    kind = type(value)
    if kind in MAPPINGS or kind in SEQUENCES:
        return kind
    if isinstance(value, tuple):
        return tuple if hasattr(kind, "_fields") else None
    if isinstance(value, OWN_KINDS) and not getattr(value, "__dict__", None):
        return next(one for one in OWN_KINDS if isinstance(value, one))
    return None


# --- a state -----------------------------------------------------------------------------------


def to_state(value: object) -> object:
    """Return a copy of a value in a form that a checkpoint can hold, or `NO_STATE`.

    >>> to_state({"a": [1, 2]}), to_state({3}), to_state(object()) is NO_STATE
    ({'a': [1, 2]}, [3], True)
    """
    kind = type(value)
    # The exact type: an enum member is an int, but would come back as a plain one.
    if kind in SCALARS:
        return value
    if kind in CONTAINERS:
        return _state_of_parts(value, MOST)
    if isinstance(value, set | frozenset | deque):
        return _state_of_parts(list(value), MOST)
    return _state_of_one(value)


def _state_of_one(value: object) -> object:  # noqa: PLR0911 - a line for each kind
    """Return the state of what is not a container; both forms have it."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Tensor):
        return value.detach().to("cpu", copy=True)
    if isinstance(value, np.ndarray):
        try:
            return torch.from_numpy(value.copy())
        except (TypeError, ValueError):  # Text, objects, foreign bytes: torch has no type for them.
            return NO_STATE
    if isinstance(value, torch.Generator):
        return value.get_state()
    if isinstance(value, random.Random):
        return value.getstate()
    if isinstance(value, np.random.Generator):
        return _as_tensors(value.bit_generator.state)
    if isinstance(value, np.random.RandomState):
        return _as_tensors(value.get_state(legacy=False))
    return NO_STATE


def _state_of_parts(values: object, room: int) -> object:  # noqa: PLR0911 - all or nothing
    """Return the state of a plain container: all or nothing, as a list with gaps is another."""
    if isinstance(values, dict):
        if not {type(key) for key in values} <= SCALARS:
            return NO_STATE
        parts = _state_of_parts(list(values.values()), room)
        return parts if parts is NO_STATE else dict(zip(values, cast("Any", parts), strict=True))
    listed = cast("list[object] | tuple[object, ...]", values)
    if len(listed) > room:
        return NO_STATE
    if _is_flat(listed):
        return listed if isinstance(listed, tuple) else list(listed)
    states: list[object] = []
    for one in listed:
        # It is restored without the old value, so it must be of a type that needs none.
        if isinstance(one, np.ndarray | torch.Generator | set | deque):
            return NO_STATE
        state = _state_of_parts(one, room) if type(one) in CONTAINERS else to_state(one)
        if state is NO_STATE:
            return NO_STATE
        room -= len(state) if isinstance(state, list | tuple | dict) else 1
        states.append(state)
    return tuple(states) if isinstance(listed, tuple) else states


def restore_state(old: Any, state: Any) -> object:  # noqa: ANN401, PLR0911 - a line for each kind
    """Return a value restored from its state: in place if others may refer to the same object.

    Args:
        old: The current value.
        state: What `to_state` returned for the value to restore.
    """
    if isinstance(old, np.generic):
        return cast("object", np.asarray(state, old.dtype)[()])
    if isinstance(old, np.ndarray):
        new = state.numpy()
        if old.shape != new.shape or old.dtype != new.dtype or not old.flags.writeable:
            return cast("object", new.copy())
        old[...] = new
        return old
    if isinstance(old, Tensor):
        if old.shape != state.shape or old.dtype != state.dtype:
            return cast("object", state.to(old.device, copy=True))
        with torch.no_grad():
            return old.copy_(state)
    if isinstance(old, GENERATOR_TYPES):
        return _restore_generator(old, state)
    # A copy: the checkpoint must not change when the object does.
    copied = to_state(state)
    if isinstance(old, frozenset):
        return frozenset(state) if isinstance(state, list) else state
    if not isinstance(old, OWN_KINDS):
        return state if copied is NO_STATE else copied
    fits = isinstance(state, list) or (isinstance(state, dict) and isinstance(old, dict | set))
    return _refill(old, copied, type(old)) if fits else state


def _restore_generator(old: Any, state: Any) -> object:  # noqa: ANN401 - each has its own
    if isinstance(old, torch.Generator):
        old.set_state(state)
    elif isinstance(old, random.Random):
        old.setstate((state[0], tuple(state[1]), state[2]))
    elif isinstance(old, np.random.Generator):
        old.bit_generator.state = cast("Any", _as_arrays(state))
    else:
        old.set_state(_as_arrays(state))
    return cast("object", old)


def _refill(old: object, new: object, kind: Any) -> object:  # noqa: ANN401 - a type of containers
    """Give a container other contents; ``kind`` is the class whose methods do it."""
    kind.clear(old)
    (kind.extend if issubclass(kind, list | deque) else kind.update)(old, new)
    return old


# --- a value -----------------------------------------------------------------------------------


def to_value(value: object, most: int = MOST) -> object:
    """Return a copy of a value in a form that a checkpoint can hold, or `NO_STATE`.

    Args:
        value: The value.
        most: How many numbers it may have, those of its tensors included.

    >>> to_value({1, 2}), to_value({"a": 0.5}), to_value(object()) is NO_STATE
    ({'#kind': 'set', 'parts': [1, 2]}, {'a': 0.5}, True)
    """
    return _copied(value, [most])


def _copied(value: object, room: list[int]) -> object:  # noqa: C901, PLR0911, PLR0912 - a line for each kind
    kind = type(value)
    if kind in PLAIN:
        room[0] -= 1
        return value
    room[0] -= value.numel() if isinstance(value, Tensor) and not is_lazy(value) else 1
    room[0] -= value.size if isinstance(value, np.ndarray) else 0
    if room[0] < 0:
        return NO_STATE
    if isinstance(value, Tensor):
        return _tensor(value)
    if isinstance(value, np.ndarray):
        state = _state_of_one(value)
        return state if state is NO_STATE else {KIND: "array", "value": state}
    if isinstance(value, np.generic):
        return {KIND: "number", "type": value.dtype.str, "value": value.item()}
    if isinstance(value, GENERATOR_TYPES):
        return {KIND: "generator", "type": _name_of(value), "state": _state_of_one(value)}
    if isinstance(value, PurePath):
        return {KIND: "path", "value": str(value)}
    if isinstance(value, Enum):
        return {KIND: "enum", "type": kind.__qualname__, "name": value.name}
    if isinstance(value, bytearray | array):
        code = value.typecode if isinstance(value, array) else ""
        return {KIND: "bytes", "type": code, "value": bytes(value)}
    container = container_of(value)
    if container is None:
        return NO_STATE
    if container in MAPPINGS:
        state = _mapping(cast("dict[object, object]", value), room)
    else:
        state = _sequence(cast("list[object]", value), room)
    if container is kind or state is NO_STATE:
        return state
    return {KIND: "own", "type": kind.__qualname__, "state": state}


def _tensor(value: Tensor) -> object:
    if is_lazy(value):
        return NO_STATE
    copied = _state_of_one(value)
    if value.device.type == "cpu":
        return copied
    return {KIND: "tensor", "value": copied}


def _mapping(value: dict[object, object], room: list[int]) -> object:
    keys, parts = _parts(value.keys(), room), _parts(value.values(), room)
    if keys is None or parts is None:
        return NO_STATE
    kind = cast("type", container_of(value))
    if kind is dict and {type(key) for key in keys} <= SCALARS and KIND not in keys:
        return dict(zip(keys, parts, strict=True))
    state: dict[object, object] = {KIND: kind.__name__, "keys": keys, "parts": parts}
    if isinstance(value, defaultdict):
        factory = value.default_factory
        state["factory"] = None if factory is None else getattr(factory, "__name__", "")
    return state


def _sequence(value: Iterable[object], room: list[int]) -> object:
    parts = _parts(value, room)
    if parts is None:
        return NO_STATE
    kind = cast("type", container_of(value))
    if kind in (list, tuple):
        return parts if kind is list else tuple(parts)
    state = {KIND: kind.__name__, "parts": parts}
    return {**state, "maxlen": value.maxlen} if isinstance(value, deque) else state


def _parts(values: Iterable[object], room: list[int]) -> list[object] | None:
    """Return the copies of parts; None if one cannot be saved, as a list with gaps is another."""
    listed = list(values)
    if {type(one) for one in listed} <= PLAIN:
        room[0] -= len(listed)
        return listed if room[0] >= 0 else None
    copies = []
    for one in listed:
        copy = _copied(one, room)
        if copy is NO_STATE:
            return None
        copies.append(copy)
    return copies


def _name_of(generator: object) -> str:
    if isinstance(generator, np.random.Generator):
        return type(generator.bit_generator).__name__
    return f"{type(generator).__module__}.{type(generator).__name__}"


def is_plain(value: object) -> bool:
    """Return whether a file holds a value as it is: tensors, numbers, text, plain containers."""
    if isinstance(value, Tensor) or type(value) in PLAIN or isinstance(value, np.generic):
        return True
    if isinstance(value, dict):
        return all(is_plain(part) for pair in value.items() for part in pair)
    return isinstance(value, list | tuple | set) and all(map(is_plain, value))


def restore_value(old: object, state: object, device: torch.device) -> object:
    """Return a value restored from its state: in place if others may refer to the same object.

    Args:
        old: What the script has in its place.
        state: What `to_value` returned.
        device: Where tensors go that were not on the CPU.

    Raises:
        CannotRestoreError: If the value needs an object that the script does not have.
    """
    new = _built(old, state, device)
    if isinstance(state, Mapping) and state.get(KIND) == "own":
        return _as_own(old, str(state["type"]), new)
    if isinstance(old, Tensor) and isinstance(new, Tensor):  # Perhaps a parameter, and stays one.
        return restore_state(old, new)
    kind = type(old)
    if new is old or type(new) is not kind:
        return new
    if isinstance(old, np.ndarray):
        return restore_state(old, torch.from_numpy(new))
    if isinstance(old, list | dict | set) or (
        isinstance(old, deque) and old.maxlen == cast("deque[object]", new).maxlen
    ):
        return _refill(old, new, kind)
    return new


def _built(  # noqa: C901, PLR0911, PLR0912 - a line for each kind
    old: object, state: object, device: torch.device
) -> object:
    if isinstance(state, Tensor):
        return state.clone()
    if isinstance(state, list | tuple):
        parts = [_built(None, part, device) for part in state]
        return parts if isinstance(state, list) else tuple(parts)
    if not isinstance(state, Mapping):
        return state
    kind = state.get(KIND)
    if kind is None:
        return {key: _built(None, part, device) for key, part in state.items()}
    if kind == "own":
        return _built(None, state["state"], device)
    if kind == "bytes":
        return _bytes(old, str(state["type"]), cast("bytes", state["value"]))
    if kind == "tensor":
        return cast("Tensor", state["value"]).to(device, copy=True)
    if kind == "array":
        return cast("Tensor", state["value"]).numpy().copy()
    if kind == "number":
        return np.dtype(str(state["type"])).type(state["value"])
    if kind == "generator":
        return _generator(old, state)
    if kind == "path":
        return Path(str(state["value"]))
    if kind == "enum":
        if not isinstance(old, Enum) or state["name"] not in type(old).__members__:
            raise CannotRestoreError(f"it was {state['type']}.{state['name']}")
        return type(old)[str(state["name"])]
    parts = [_built(None, part, device) for part in state["parts"]]
    if "keys" in state:
        pairs = zip((_built(None, key, device) for key in state["keys"]), parts, strict=True)
        return _mapping_from(old, str(kind), dict(pairs), state.get("factory"))
    if kind == "deque":
        return deque(parts, cast("int | None", state["maxlen"]))
    return set(parts) if kind == "set" else frozenset(parts)


def _as_own(old: object, name: str, new: object) -> object:
    """Return a value of a user's class, without a call of what that class overrides."""
    kind = type(old)
    if kind.__qualname__ != name:
        raise CannotRestoreError(f"it was of the class {name}")
    if isinstance(old, tuple):
        return cast("object", tuple.__new__(cast("type[Any]", kind), cast("Any", new)))
    base = next((one for one in OWN_KINDS if isinstance(old, one)), None)
    return old if base is None else _refill(old, new, base)


def _bytes(old: object, code: str, value: bytes) -> object:
    new: bytearray | array[Any] = array(code, value) if code else bytearray(value)
    if type(old) is type(new) and getattr(old, "typecode", "") == code:
        cast("Any", old)[:] = new
        return old
    return new


def _mapping_from(old: object, kind: str, pairs: dict[object, object], factory: object) -> object:
    if kind != "defaultdict":
        by_name = {one.__name__: one for one in MAPPINGS}
        return by_name.get(kind, dict)(pairs)
    if isinstance(old, defaultdict):
        return defaultdict(old.default_factory, pairs)
    if factory is not None and factory not in FACTORIES:
        raise CannotRestoreError("it was a defaultdict with a function of its own")
    return defaultdict(None if factory is None else FACTORIES[str(factory)], pairs)


def _generator(old: object, state: Mapping[str, object]) -> object:
    name = str(state["type"])
    if not isinstance(old, GENERATOR_TYPES) or _name_of(old) != name:
        if name == "torch._C.Generator":
            old = torch.Generator()
        elif name == "random.Random":
            old = random.Random()
        elif name == "numpy.random.mtrand.RandomState":
            old = np.random.RandomState()
        elif name in ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"):
            old = np.random.Generator(getattr(np.random, name)())
        else:
            raise CannotRestoreError(f"it was a generator of the type {name}")
    return _restore_generator(old, state["state"])


# --- of both -----------------------------------------------------------------------------------


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
