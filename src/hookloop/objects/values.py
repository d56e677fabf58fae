"""Values in a form that a checkpoint can hold and that says what they are.

Unlike a state of `attribute_state`, it can be turned back without the old value: one that was None
when the script began may be a deque of arrays later.
"""

from __future__ import annotations

import random
import zlib
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

from hookloop.objects.attributes import (
    GENERATOR_TYPES,
    MOST,
    NO_STATE,
    SCALARS,
    restore_state,
    to_state,
)

KIND = "#kind"
"""The key of a mapping that stands for a value of another type."""

PLAIN = SCALARS | {bytes, complex, torch.dtype, torch.device}
"""Types that a file holds as they are."""

MAPPINGS: tuple[type, ...] = (dict, OrderedDict, defaultdict, Counter)
SEQUENCES: tuple[type, ...] = (list, tuple, set, frozenset, deque)

OWN_KINDS: tuple[type, ...] = (dict, list, set, deque)
"""What a user's class may extend and still be restored in place, if it adds no attributes."""

FACTORIES = {kind.__name__: kind for kind in (int, float, bool, str, list, dict, set)}
"""What a `defaultdict` may be built with."""

SAMPLED = 1024
"""How many parts of a large tensor a checksum reads."""

LARGE = 1 << 26
"""Bytes above which a checksum reads only parts of a tensor."""

LONG = 10_000
"""Entries above which only some of a container are looked at to see whether it has changed."""


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
        state = to_state(value)
        return state if state is NO_STATE else {KIND: "array", "value": state}
    if isinstance(value, np.generic):
        return {KIND: "number", "type": value.dtype.str, "value": value.item()}
    if isinstance(value, GENERATOR_TYPES):
        return {KIND: "generator", "type": _name_of(value), "state": to_state(value)}
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
    copied = value.detach().to("cpu", copy=True)
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


# --- back --------------------------------------------------------------------------------------


def restore_value(old: object, state: object, device: torch.device) -> object:  # noqa: PLR0911 - a line for each kind
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
    if new is old or type(new) is not type(old):
        return new
    if isinstance(old, np.ndarray):
        return restore_state(old, torch.from_numpy(new))
    if isinstance(old, list):
        old[:] = cast("list[object]", new)
        return old
    if isinstance(old, dict | set):
        old.clear()
        old.update(cast("Any", new))
        return old
    if isinstance(old, deque) and old.maxlen == cast("deque[object]", new).maxlen:
        old.clear()
        old.extend(cast("deque[object]", new))
        return old
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
    if isinstance(old, list):
        list.__setitem__(old, slice(None), cast("list[object]", new))
    elif isinstance(old, dict):
        dict.clear(old)
        dict.update(old, cast("dict[object, object]", new))
    elif isinstance(old, set):
        set.clear(old)
        set.update(old, cast("set[object]", new))
    elif isinstance(old, deque):
        deque.clear(old)
        deque.extend(old, cast("deque[object]", new))
    return old


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
    return restore_state(old, state["state"])


# --- whether a value has changed ---------------------------------------------------------------


def mark_of(value: object) -> object:  # noqa: PLR0911 - a line for each kind
    """Return what tells a value from what it was before, without keeping all of it.

    Of what is large, only some is looked at.

    >>> mark_of([1, 2]) == mark_of([1, 2]), mark_of([1, 2]) == mark_of([2, 1])
    (True, False)
    """
    kind = type(value)
    if kind in PLAIN:  # 1, 1.0 and True are equal to Python, and NaN is not equal to itself.
        return kind.__name__, repr(value) if kind is float else value
    if isinstance(value, Tensor):
        if is_lazy(value):
            return "lazy", id(value)
        local = value.detach()
        return "tensor", str(value.dtype), tuple(value.shape), checksum(local)
    if isinstance(value, np.ndarray) and value.dtype != object:
        return "array", value.dtype.str, value.shape, _checksum_of_array(value)
    if isinstance(value, GENERATOR_TYPES):
        return "generator", _mark_of_parts([to_state(value)])
    if isinstance(value, bytearray | array):
        return kind.__name__, len(value), zlib.crc32(value)
    container = container_of(value)
    if container in MAPPINGS:
        mapping = cast("dict[object, object]", value)
        return (
            kind.__name__,
            len(mapping),
            _mark_of_parts(mapping),
            _mark_of_parts(mapping.values()),
        )
    if container is not None:
        return kind.__name__, len(cast("list[object]", value)), _mark_of_parts(cast("Any", value))
    if isinstance(value, np.generic | Enum | PurePath):
        return kind.__name__, str(value)
    return f"{kind.__module__}.{kind.__qualname__}", Itself(value)


class Itself:
    """Equal to the same object only; it keeps the object, as another may get its address.

    Args:
        value: The object.
    """

    def __init__(self, value: object) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Itself) and self._value is other._value

    def __hash__(self) -> int:
        return id(self._value)

    def __repr__(self) -> str:
        return f"<{id(self._value)}>"


def _mark_of_parts(parts: Iterable[object]) -> object:
    listed = list(parts)
    chosen = listed if len(listed) <= LONG else listed[:: len(listed) // SAMPLED]
    if {type(one) for one in chosen} <= {int, str, bool, type(None)}:
        return zlib.crc32(repr(chosen).encode())
    return zlib.crc32(repr([mark_of(one) for one in chosen]).encode())


def checksum(value: Tensor) -> int:
    """Return a checksum of a tensor; of a large one, of parts all over it."""
    if value.layout is not torch.strided or value.is_quantized:
        return zlib.crc32(repr([checksum(one) for one in _dense_parts(value)]).encode())
    if hasattr(value, "to_local"):  # Of a tensor that is spread over ranks, this rank's part.
        value = value.to_local()
    flat = value.contiguous().view(-1)
    if flat.element_size() * flat.numel() > LARGE:
        size = max(1, 4096 // flat.element_size())
        step = flat.numel() // SAMPLED
        flat = torch.stack([flat[i * step : i * step + size] for i in range(SAMPLED)]).view(-1)
    if not flat.numel():
        return 0
    return zlib.crc32(flat.view(torch.uint8).cpu().numpy().data)


def _dense_parts(value: Tensor) -> list[Tensor]:
    """Return the dense tensors of which a sparse or quantized one consists."""
    if value.is_quantized:
        return [value.int_repr()]
    if value.layout is torch.sparse_coo:
        value = value.coalesce()
        return [value.indices(), value.values()]
    if value.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [value.crow_indices(), value.col_indices(), value.values()]
    if value.layout in (torch.sparse_csc, torch.sparse_bsc):
        return [value.ccol_indices(), value.row_indices(), value.values()]
    return []


def _checksum_of_array(value: np.ndarray[Any, Any]) -> int:
    try:
        return checksum(torch.from_numpy(value))
    except (TypeError, ValueError):  # Text, or a layout that torch does not know.
        return zlib.crc32(np.ascontiguousarray(value).tobytes())
