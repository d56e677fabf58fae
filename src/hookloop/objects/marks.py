"""Whether a value has changed, without keeping all of what it was."""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterable
from enum import Enum
from pathlib import PurePath
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn.parameter import is_lazy

from hookloop.objects.values import GENERATOR_TYPES, MAPPINGS, PLAIN, container_of, to_state

SAMPLED = 1024
"""How many parts of a large tensor a checksum reads."""

LARGE = 1 << 26
"""Bytes above which a checksum reads only parts of a tensor."""

LONG = 10_000
"""Entries above which only some of a container are looked at to see whether it has changed."""


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
