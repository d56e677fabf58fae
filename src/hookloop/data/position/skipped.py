"""Skip data after a rewind: the batches of some iterations are read and not trained on.

Such an iteration has a number of its own: that which it had when nothing was skipped. So the
number stays true when others are skipped before it, and the same data is skipped on every rank,
whatever the data is mixed from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol


class Counters(Protocol):
    """What is asked of the progress of a run."""

    iter: int
    iter_in_epoch: int
    skipped_iters: tuple[int, ...]


def number_of(iteration: int, skipped_iters: Iterable[int]) -> int:
    """Return the number that an iteration would have if no data had been skipped.

    >>> [number_of(iteration, skipped_iters=(2, 3, 6)) for iteration in (1, 2, 3, 4)]
    [1, 4, 5, 7]
    """
    number = iteration
    for lost in sorted(skipped_iters):
        if lost > number:
            break
        number += 1
    return number


def skip_iterations(groups: Iterator[list[object]], progress: Counters) -> Iterator[list[object]]:
    """Return the groups of an epoch from here on, without those that are skipped."""
    if not progress.skipped_iters:  # Nothing is added to an iteration.
        return groups
    lost, first = (
        frozenset(progress.skipped_iters),
        number_of(progress.iter, progress.skipped_iters) + 1,
    )
    return (group for number, group in enumerate(groups, first) if number not in lost)


def has_skipped_data(progress: Counters) -> bool:
    """Return whether data of the current epoch was skipped, so that it has fewer iterations."""
    before = number_of(progress.iter - progress.iter_in_epoch, progress.skipped_iters)
    return any(lost > before for lost in progress.skipped_iters)


def add_skipped(
    earlier: tuple[int, ...], since: tuple[int, ...], iterations: Iterable[int]
) -> tuple[int, ...]:
    """Return what is skipped after a rewind, in the order of the data.

    Args:
        earlier: What the checkpoint skips.
        since: What the run has skipped until now.
        iterations: Whose data is skipped from now on, as the run counted them until now.

    >>> add_skipped((), (5,), [4, 5])
    (4, 5, 6)
    """
    new = (number_of(iteration, since) for iteration in iterations)
    return tuple(sorted({*earlier, *since, *new}))
