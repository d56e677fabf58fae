"""In which order data keeps its samples, as far as that can be seen without reading any.

A data set that shuffles itself, when it is built without a seed or from pass to pass, has another
order in the process that resumes. Nothing else would tell: the sampler gives the same indices, and
behind them are other samples. So the lists, arrays and tensors that a data set holds are looked at
in a few places, when it is given, when a pass begins and when a checkpoint is made.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from hookloop.data.samplers import Stateful

_log = logging.getLogger("hookloop")

LOOKS = 64
"""Places at which a list is looked at."""

MOST = 1 << 26
"""Bytes of an array that is summed up."""

DEPTH = 2
"""Data sets within data sets that are looked into: subsets, concatenations."""

State = dict[str, list[object]]


@dataclass(frozen=True)
class Order:
    """What is remembered of one sequence.

    Attributes:
        length: How long it is.
        digest: Condenses some of its elements.
        total: A sum over all elements that does not depend on their order.
    """

    length: int
    digest: str
    total: int | None


class Orders:
    """The sequences of a data set, or of a list of batches, as they were given.

    Args:
        data: The loader, or the list.
        name: How messages call it.
    """

    def __init__(self, data: object, name: str) -> None:
        self._data = data
        self._name = name
        self._has_warned = False
        self._given = {
            name: Order(len(one), digest, _total(one))
            for name, one in self._sequences()
            if (digest := _digest(one)) is not None
        }

    def state_dict(self) -> State:
        """Return what shows whether another process was given the same."""
        return {name: [one.length, one.digest] for name, one in self._given.items()}

    def warn_if_reordered(self) -> None:
        """Warn once about data that shuffles itself during the run, which no checkpoint holds."""
        if self._has_warned or isinstance(getattr(self._data, "dataset", None), Stateful):
            return
        found = self.reordered()
        if found is not None:
            self._has_warned = True
            _log.warning(
                "A resume of %s may not be exact: %s was reordered during the run, which no "
                "checkpoint holds. Leave the order to a sampler (shuffle=True), or give the data "
                "set state_dict() and load_state_dict().",
                self._name,
                f"its data set's '{found}'" if found else "it",
            )

    def warn_of_changes(self, before: Mapping[str, Sequence[object]]) -> None:
        """Warn if the process that is resumed was given something else."""
        changed = self._changed_since(before)
        if changed:
            what = " and ".join(f"its data set's '{one}'" if one else "it" for one in changed[:3])
            _log.warning(
                "%s is not what it was: %s has other contents, or another order, than in the run "
                "that is resumed. This resume is not exact; build it from a fixed seed.",
                self._name,
                what,
            )

    def _changed_since(self, before: Mapping[str, Sequence[object]]) -> list[str]:
        """Name what is as long as in the process that returned the state, but differs."""
        return [
            name
            for name, one in self._given.items()
            if name in before and before[name][0] == one.length and before[name][1] != one.digest
        ]

    def reordered(self) -> str | None:
        """Name a sequence that has the elements that were given, in another order."""
        for name, one in self._sequences():
            given = self._given.get(name)
            if given is None or len(one) != given.length or _digest(one) == given.digest:
                continue
            if given.total is not None and _total(one) == given.total:
                return name
        return None

    def _sequences(self) -> Iterator[tuple[str, Any]]:
        if type(self._data) in (list, tuple) and self._data:
            yield "", self._data
        dataset = getattr(self._data, "dataset", None)
        if dataset is not None:
            yield from _held(dataset, "", DEPTH)


def _held(holder: object, path: str, depth: int) -> Iterator[tuple[str, Any]]:
    """Yield the sequences that an object holds, with their names."""
    for name, value in list(getattr(holder, "__dict__", {}).items()):
        way = f"{path}{name}"
        if _is_sequence(value):
            yield way, value
        if depth:
            for part in value[:LOOKS] if isinstance(value, list | tuple) else [value]:
                if hasattr(type(part), "__getitem__") and hasattr(part, "__dict__"):
                    yield from _held(part, f"{way}.", depth - 1)


def _is_sequence(value: Any) -> bool:  # noqa: ANN401 - whatever an attribute may be
    if isinstance(value, Tensor):
        if value.layout is not torch.strided or value.is_meta or value.is_quantized:
            return False
        return not value.is_nested and value.ndim > 0 < len(value)
    if isinstance(value, np.ndarray):
        return value.ndim > 0 < len(value)
    return (isinstance(value, list | tuple) or _is_table(value)) and len(value) > 0


def _is_table(value: object) -> bool:
    """Return whether a value is of pandas, by what such values have."""
    return hasattr(type(value), "iloc")


def _digest(values: Any) -> str | None:  # noqa: ANN401 - a list, an array, a table
    """Condense elements at some places, or return None if they are not known by their value."""
    digest = hashlib.blake2b(digest_size=12)
    at = values.iloc if _is_table(values) else values
    for place in sorted({round(one) for one in np.linspace(0, len(values) - 1, LOOKS)}):
        part = _bytes_of(at[place])
        if part is None:
            return None
        digest.update(part)
    return digest.hexdigest()


def _bytes_of(value: Any, looks: int = LOOKS) -> bytes | None:  # noqa: ANN401 - of any kind
    """Condense one element, fewer parts of it the deeper they are."""
    if isinstance(value, bool | int | float | str | bytes):
        return repr(value).encode()
    if isinstance(value, Tensor) and (value.is_quantized or value.is_nested or value.is_meta):
        return None
    if isinstance(value, Tensor | np.ndarray | np.generic) or _is_table(value):
        flat = value.detach().reshape(-1) if isinstance(value, Tensor) else np.ravel(value)
        some = flat[:: max(1, len(flat) // LOOKS)].tolist()
        is_plain = isinstance(flat, Tensor) or not flat.dtype.hasobject
        return repr(some).encode() if is_plain else _bytes_of(some, looks)
    if not isinstance(value, list | tuple | dict):
        return None
    parts = list(value.values()) if isinstance(value, dict) else value
    found = [_bytes_of(part, looks // 8) for part in parts[:looks]]
    return None if None in found else b"(" + b",".join(cast("list[bytes]", found)) + b")"


def _has_objects(values: Tensor | np.ndarray[Any, Any]) -> bool:
    return isinstance(values, np.ndarray) and values.dtype.hasobject


def _total(values: Any) -> int | None:  # noqa: ANN401 - a list, an array, a table
    """Sum up a sequence, numbers by their value, objects by who they are; None if too large."""
    if isinstance(values, list | tuple):
        is_counted = {type(one) for one in values} <= {int, bool}
        return sum(values) if is_counted else sum(map(id, values))
    if _is_table(values):
        values = np.asarray(values.index)
    if values.nbytes > MOST or isinstance(values, np.memmap) or _has_objects(values):
        return None
    if isinstance(values, Tensor):
        return int(
            values.detach()
            .resolve_conj()
            .resolve_neg()
            .contiguous()
            .view(torch.uint8)
            .sum(dtype=torch.int64)
        )
    return int(np.ascontiguousarray(values).view(np.uint8).sum(dtype=np.int64))
