"""Compare two checkpoints bit by bit, to prove that a resume was exact."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from hookloop.runs.policy import is_clock

NOT_COMPARED = ("config", "environment", "machine", "versions")
"""Parts that describe how a run was made, not its state."""

TENSORS = ("model", "averaged", "optimizers")
"""Parts in which every entry is compared, whatever its name."""


@dataclass(frozen=True)
class Difference:
    """A part in which two checkpoints differ.

    Attributes:
        part: ``model``, ``optimizers``, ``rng``, ...
        key: The path to the first entry that differs.
        what: How it differs.
        count: How many entries of the part differ.
    """

    part: str
    key: str
    what: str
    count: int

    def __str__(self) -> str:
        more = f" (and {self.count - 1} more of {self.part})" if self.count > 1 else ""
        return f"{self.key}: {self.what}{more}"


def compare(one: Mapping[str, object], other: Mapping[str, object]) -> list[Difference]:
    """Compare every tensor and counter; values that measure time are skipped.

    >>> compare({"progress": {"iter": 3}}, {"progress": {"iter": 4}})
    [Difference(part='progress', key='progress.iter', what='3 is not 4', count=1)]
    >>> compare({"metrics": {"train/iter_time": 1.0}}, {"metrics": {"train/iter_time": 2.0}})
    []
    """
    found = []
    machine = {*_declared(one), *_declared(other)}
    for part in dict.fromkeys([*one, *other]):
        if part in NOT_COMPARED:
            continue
        differing = list(_walk(one.get(part, _NOTHING), other.get(part, _NOTHING), part, machine))
        if differing:
            key, what = differing[0]
            found.append(Difference(part, key, what, len(differing)))
    return found


def _declared(checkpoint: Mapping[str, object]) -> list[str]:
    """Return the metrics that the hooks of a run declared as measuring the machine."""
    found = checkpoint.get("machine")
    return list(map(str, found)) if isinstance(found, list) else []


def _walk(
    one: object, other: object, key: str, machine: Collection[str]
) -> Iterator[tuple[str, str]]:
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        if what := _tensors_differ(one, other):
            yield key, what
    elif isinstance(one, Mapping) and isinstance(other, Mapping):
        takes_all = key.partition(".")[0] in TENSORS
        for name in dict.fromkeys([*one, *other]):
            if takes_all or not is_clock(str(name), machine):
                pair = one.get(name, _NOTHING), other.get(name, _NOTHING)
                yield from _walk(*pair, f"{key}.{name}", machine)
    elif isinstance(one, list | tuple) and isinstance(other, list | tuple):
        if len(one) != len(other):
            yield key, f"{len(one)} entries are not {len(other)}"
        else:
            for index, pair in enumerate(zip(one, other, strict=True)):
                yield from _walk(*pair, f"{key}[{index}]", machine)
    elif not _is_same(one, other):
        yield key, f"{one!r} is not {other!r}"


def _tensors_differ(one: Tensor, other: Tensor) -> str | None:
    if one.dtype != other.dtype or one.shape != other.shape:
        return f"{one.dtype} {tuple(one.shape)} is not {other.dtype} {tuple(other.shape)}"
    # Compared as bytes, so that NaN equals itself and -0.0 differs from 0.0.
    bits = [value.contiguous().view(-1).view(torch.uint8) for value in (one, other)]
    if torch.equal(*bits):
        return None
    if not one.is_floating_point():
        return f"{int((one != other).sum())} of {one.numel()} numbers differ"
    gap = (one.double() - other.double()).abs().max().item()
    return f"{int((one != other).sum())} of {one.numel()} numbers differ, by {gap:.3g} at most"


def _is_same(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return struct.pack("d", one) == struct.pack("d", other)  # As bytes, as with tensors.
    # The type as well: 1, 1.0 and True are equal to Python.
    return type(one) is type(other) and one == other


class _Nothing:
    def __repr__(self) -> str:
        return "nothing"


_NOTHING = _Nothing()
