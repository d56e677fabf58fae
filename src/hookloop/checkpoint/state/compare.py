"""Compare two checkpoints bit by bit, to prove that a resume was exact."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from hookloop.runs.policy import is_clock
from hookloop.runs.trees import NOTHING, differences

NOT_COMPARED = ("config", "environment", "machine", "run_id", "versions")
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

    def is_compared(path: str, key: str) -> bool:
        return path.partition(".")[0] in TENSORS or not is_clock(key, machine)

    for part in dict.fromkeys([*one, *other]):
        if part in NOT_COMPARED:
            continue
        differing = list(
            differences(
                one.get(part, NOTHING),
                other.get(part, NOTHING),
                part,
                is_equal=_is_same,
                is_compared=is_compared,
                into_lists=True,
            )
        )
        if differing:
            what = _what_differs(differing[0].old, differing[0].new)
            found.append(Difference(part, differing[0].path, what, len(differing)))
    return found


def _declared(checkpoint: Mapping[str, object]) -> list[str]:
    """Return the metrics that the hooks of a run declared as measuring the machine."""
    found = checkpoint.get("machine")
    return list(map(str, found)) if isinstance(found, list) else []


def _what_differs(one: object, other: object) -> str:
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return _tensors_differ(one, other) or ""
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return f"{len(one)} entries are not {len(other)}"
    return f"{one!r} is not {other!r}"


def _tensors_differ(one: Tensor, other: Tensor) -> str | None:
    if one.dtype != other.dtype or one.shape != other.shape:
        return f"{one.dtype} {tuple(one.shape)} is not {other.dtype} {tuple(other.shape)}"
    # Compared as bytes, so that NaN equals itself and -0.0 differs from 0.0.
    one, other = (v if v.layout is torch.strided else v.to_dense() for v in (one, other))
    bits = [value.contiguous().view(-1).view(torch.uint8) for value in (one, other)]
    if torch.equal(*bits):
        return None
    if not one.is_floating_point():
        return f"{int((one != other).sum())} of {one.numel()} numbers differ"
    gap = (one.double() - other.double()).abs().max().item()
    return f"{int((one != other).sum())} of {one.numel()} numbers differ, by {gap:.3g} at most"


def _is_same(one: object, other: object) -> bool:
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return _tensors_differ(one, other) is None
    if isinstance(one, Mapping | list | tuple) and isinstance(other, Mapping | list | tuple):
        return False  # Of unlike kinds or lengths; the others are compared entry by entry.
    if isinstance(one, float) and isinstance(other, float):
        return struct.pack("d", one) == struct.pack("d", other)  # As bytes, as with tensors.
    # The type as well: 1, 1.0 and True are equal to Python.
    return type(one) is type(other) and one == other
