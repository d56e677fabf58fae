"""``mmengine.dist.collect_results``: the results of all processes, in the order of the data.

Each process evaluates a contiguous part of every global batch. So the order of the data is batch by
batch, and within a batch process by process. `Parts` notes which results belong to which batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar, cast

from hookloop_mmengine.dist.exchange import all_gather_object
from hookloop_mmengine.dist.processes import is_distributed, is_main_process

T = TypeVar("T")


class Parts:
    """How many results of this process belong to which global batch.

    >>> parts = Parts()
    >>> parts.note(1, 2)
    >>> parts.note(2, 3)
    >>> parts.cut("abc")
    [(1, ['a', 'b']), (2, ['c'])]
    """

    def __init__(self) -> None:
        self._ends: list[tuple[int, int]] = []

    def note(self, batch: int, end: int) -> None:
        """Note that the results up to ``end`` belong to a batch, as far as they are new."""
        self._ends.append((batch, end))

    def add(self, batch: int, count: int) -> None:
        """Note that a batch has so many results, unless it was noted already."""
        last, end = self._ends[-1] if self._ends else (0, 0)
        if batch != last:
            self.note(batch, end + count)

    def clear(self) -> None:
        """Begin with another evaluation."""
        self._ends.clear()

    def cut(self, results: Sequence[T]) -> list[tuple[int, list[T]]] | None:
        """Return the results of each batch; None if these are not the results that were noted."""
        if (self._ends[-1][1] if self._ends else 0) != len(results):
            return None
        begins = [0, *(end for _, end in self._ends)]
        return [
            (batch, list(results[begin:end]))
            for begin, (batch, end) in zip(begins, self._ends, strict=False)
        ]


samples = Parts()
"""The samples that this process has evaluated: for hooks that collect one result per sample."""


def collect_results(
    results: list[T],
    size: int,
    device: str = "cpu",
    tmpdir: str | None = None,
    *,
    parts: Parts | None = None,
) -> list[T] | None:
    """Gather the results of all processes in the main one, in the order of the data.

    Args:
        results: The results of this process.
        size: The number of samples; what is beyond it is dropped.
        device: Accepted for its name: results travel in memory.
        tmpdir: Accepted for its name, too.
        parts: Which results belong to which batch; by default there is one for each sample of the
            last evaluation. If there are others, each process has taken every n-th sample.
    """
    if not is_distributed():
        return results[:size]
    cut = (samples if parts is None else parts).cut(results)
    gathered = cast("list[list[tuple[int, list[T]]] | None]", all_gather_object(cut))
    # Each process has to take the same way, so that the calls pair up.
    if any(one is None for one in gathered):
        turns = [(turn, [result]) for turn, result in enumerate(results)]
        gathered = cast("list[list[tuple[int, list[T]]] | None]", all_gather_object(turns))
    if not is_main_process():
        return None
    pieces = [piece for one in gathered for piece in one or ()]
    # A stable sort: pieces of one batch stay in the order of the processes.
    pieces.sort(key=lambda piece: piece[0])
    return [result for _, piece in pieces for result in piece][:size]




