"""Watch the order in which data holds its samples, without reading any sample.

A data set that shuffles itself, when it is built without a seed or from pass to pass, has another
order in the process that resumes. Nothing else would show that: the sampler returns the same
indices, but they mean other samples. So a few elements of the lists, arrays and tensors that a data
set holds are examined when it is given, when a pass starts and when a checkpoint is made.
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

from hookloop.data.reading.samplers import Stateful

_log = logging.getLogger("hookloop")

LOOKS = 64
"""How many elements of a list are examined."""

MOST = 1 << 26
"""Bytes of the largest array that is summed."""

DEPTH = 2
"""How deep data sets within data sets are examined, such as subsets and concatenations."""

State = dict[str, list[object]]


@dataclass(frozen=True)
class Fingerprint:
    """What is remembered of one sequence.

    Attributes:
        length: Its length.
        digest: A hash of some of its elements.
        total: A sum over all elements, which does not depend on their order.
    """

    length: int
    digest: str
    total: int | None


class OrderMonitor:
    """Remembers the sequences of a data set, or of a list of batches, as they were at first.

    Args:
        data: The loader, or the list.
        name: Its name in messages.
    """

    def __init__(self, data: object, name: str) -> None:
        self._data = data
        self._name = name
        self._has_warned = False
        self._initial = {
            name: Fingerprint(len(values), digest, _total(values))
            for name, values in self._sequences()
            if (digest := _digest(values)) is not None
        }

    def state_dict(self) -> State:
        """Return what another process needs to find out whether its data is the same."""
        # Without the totals: for a list of objects they are sums of addresses.
        return {name: [first.length, first.digest] for name, first in self._initial.items()}

    def warn_if_reordered(self) -> None:
        """Warn once about data that shuffles itself during the run, which no checkpoint holds."""
        # A data set with a state_dict is in the checkpoint, with its order.
        if self._has_warned or isinstance(getattr(self._data, "dataset", None), Stateful):
            return
        found = self.find_reordered()
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
        """Warn if the data differs from that of the run that is resumed."""
        changed = self._changed_since(before)
        if changed:
            names = [f"its data set's '{name}'" if name else "it" for name in changed[:3]]
            _log.warning(
                "%s has changed: %s has other contents, or another order, than in the run that is "
                "resumed. This resume is not exact; build the data from a fixed seed.",
                self._name,
                " and ".join(names),
            )

    def _changed_since(self, before: Mapping[str, Sequence[object]]) -> list[str]:
        """Name the sequences that have the same length as before, but other elements."""
        # Another length is reported by `Stream`, with the numbers of batches and samples.
        return [
            name
            for name, now in self._initial.items()
            if name in before and before[name][0] == now.length and before[name][1] != now.digest
        ]

    def find_reordered(self) -> str | None:
        """Name a sequence that has its first elements in another order, or None."""
        for name, values in self._sequences():
            initial = self._initial.get(name)
            if initial is None or len(values) != initial.length:
                continue
            if initial.total is None or _digest(values) == initial.digest:
                continue
            # The total tells a new order from new contents, such as a cache that fills.
            if _total(values) == initial.total:
                return name
        return None

    def _sequences(self) -> Iterator[tuple[str, Any]]:
        if type(self._data) in (list, tuple) and self._data:
            yield "", self._data
        dataset = getattr(self._data, "dataset", None)
        if dataset is not None:
            yield from _sequences_of(dataset, "", DEPTH)


def _sequences_of(holder: object, path: str, depth: int) -> Iterator[tuple[str, Any]]:
    """Yield the sequences that an object holds, with their names."""
    for name, value in list(getattr(holder, "__dict__", {}).items()):
        full_name = f"{path}{name}"
        if _is_sequence(value):
            yield full_name, value
        if depth:
            for part in value[:LOOKS] if isinstance(value, list | tuple) else [value]:
                if hasattr(type(part), "__getitem__") and hasattr(part, "__dict__"):
                    yield from _sequences_of(part, f"{full_name}.", depth - 1)


def _is_sequence(value: Any) -> bool:  # noqa: ANN401 - whatever an attribute may be
    if isinstance(value, Tensor):
        if value.layout is not torch.strided or value.is_meta or value.is_quantized:
            return False
        return not value.is_nested and value.ndim > 0 < len(value)
    if isinstance(value, np.ndarray):
        return value.ndim > 0 < len(value)
    return (isinstance(value, list | tuple) or _is_table(value)) and len(value) > 0


def _is_table(value: object) -> bool:
    """Return whether a value is a table of pandas, which need not be installed."""
    return hasattr(type(value), "iloc")


def _digest(values: Any) -> str | None:  # noqa: ANN401 - a list, an array, a table
    """Hash some elements, or return None if they cannot be compared by value."""
    digest = hashlib.blake2b(digest_size=12)
    rows = values.iloc if _is_table(values) else values
    for index in sorted({round(number) for number in np.linspace(0, len(values) - 1, LOOKS)}):
        part = _bytes_of(rows[index])
        if part is None:
            return None
        digest.update(part)
    return digest.hexdigest()


def _bytes_of(value: Any, looks: int = LOOKS) -> bytes | None:  # noqa: ANN401 - of any kind
    """Return bytes that stand for one element, from fewer parts the deeper they are."""
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
    """Sum a sequence, numbers by value and objects by identity; None if it is too large."""
    if isinstance(values, list | tuple):
        is_counted = {type(value) for value in values} <= {int, bool}
        # Within one process the same objects in another order have the same sum of addresses.
        return sum(values) if is_counted else sum(map(id, values))
    if _is_table(values):
        values = np.asarray(values.index)
    # A memory-mapped array would be read from the disk as a whole.
    if values.nbytes > MOST or isinstance(values, np.memmap) or _has_objects(values):
        return None
    if isinstance(values, Tensor):
        # Lazily conjugated or negated tensors cannot be viewed as bytes.
        return int(
            values.detach()
            .resolve_conj()
            .resolve_neg()
            .contiguous()
            .view(torch.uint8)
            .sum(dtype=torch.int64)
        )
    return int(np.ascontiguousarray(values).view(np.uint8).sum(dtype=np.int64))
