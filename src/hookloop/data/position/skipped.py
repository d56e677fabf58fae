"""Leave out data after a rewind: the batches of some iterations are read and not trained on.

Such an iteration has a number of its own: that which it had when nothing was left out. So the
number stays true when others are left out before it, and the same data is left out on every rank,
whatever the data is mixed from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol


class Counters(Protocol):
    """What is asked of the progress of a run."""

    iter: int
    iter_in_epoch: int
    left_out: tuple[int, ...]


def number_of(iteration: int, left_out: Iterable[int]) -> int:
    """Return the number that an iteration would have if no data had been left out.

    >>> [number_of(iteration, left_out=(2, 3, 6)) for iteration in (1, 2, 3, 4)]
    [1, 4, 5, 7]
    """
    number = iteration
    for lost in sorted(left_out):
        if lost > number:
            break
        number += 1
    return number


def leave_out(groups: Iterator[list[object]], progress: Counters) -> Iterator[list[object]]:
    """Return the groups of an epoch from here on, without those that are left out."""
    if not progress.left_out:  # Nothing is added to an iteration.
        return groups
    lost, first = frozenset(progress.left_out), number_of(progress.iter, progress.left_out) + 1
    return (group for number, group in enumerate(groups, first) if number not in lost)


def loses_some(progress: Counters) -> bool:
    """Return whether data of the current epoch was left out, so that it has fewer iterations."""
    before = number_of(progress.iter - progress.iter_in_epoch, progress.left_out)
    return any(lost > before for lost in progress.left_out)


def add_left_out(
    earlier: tuple[int, ...], since: tuple[int, ...], iterations: Iterable[int]
) -> tuple[int, ...]:
    """Return what is left out after a rewind, in the order of the data.

    Args:
        earlier: What the checkpoint leaves out.
        since: What the run has left out until now.
        iterations: Whose data is left out from now on, as the run counted them until now.

    >>> add_left_out((), (5,), [4, 5])
    (4, 5, 6)
    """
    new = (number_of(iteration, since) for iteration in iterations)
    return tuple(sorted({*earlier, *since, *new}))
