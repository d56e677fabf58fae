"""How many microbatches make an iteration: a number, or one that changes during the run."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from numbers import Integral
from typing import Literal, Protocol

from hookloop.errors import IntervalError, ModelError
from hookloop.every import Counters, Milestones, count_of

Accumulate = int | Mapping[int | str, int] | Literal["auto"]
"""What may be given as ``accumulate=``."""

AUTO = "auto"

_log = logging.getLogger("hookloop")


class Grouped(Protocol):
    """What a run shows of its groups."""

    accumulate: int

    @property
    def progress(self) -> Counters:
        """The completed iterations and epochs."""


class GroupSizes:
    """The number of microbatches of each iteration.

    It depends only on the completed iterations or epochs, so a resumed run groups its batches in
    the same way.

    Args:
        accumulate: A number, a mapping from moments of the run to numbers, or ``"auto"`` for one
            batch that is split where it does not fit into memory.

    >>> sizes = GroupSizes({0: 1, 3: 4})
    >>> [sizes.at(done, 0) for done in (0, 2, 3)]
    [1, 1, 4]
    >>> sizes.iters(10, 0, 0)
    5
    """

    def __init__(self, accumulate: Accumulate) -> None:
        self.is_auto = accumulate == AUTO
        self.milestones = _read(accumulate)
        self.first = int(self.milestones.values[0])
        """The number with which a run begins."""
        self.is_constant = len(self.milestones.moments) == 1

    @property
    def is_one(self) -> bool:
        """Whether every iteration is made from one whole batch."""
        return self.first == 1 and self.is_constant and not self.is_auto

    def warn_if_never_full(self, batches: int | None) -> None:
        """Report a number that is above that of the batches in an epoch, which is one update."""
        if batches is not None and self.is_constant and self.first > batches:
            _log.warning(
                "accumulate=%d, and an epoch has %s: each epoch is a single update of these. "
                "Microbatches are not carried from one epoch to the next; epochs of so many "
                "iterations are, with data=Data(epoch_iters=...).",
                self.first,
                count_of(batches, "batch"),
            )

    def to_read(self, run: Grouped) -> int | Callable[[], int]:
        """Return the size of all groups, or what returns that of the next one as it is read."""
        if self.is_constant:
            return self.first

        def next_size() -> int:
            run.accumulate = self.at(run.progress.iter, run.progress.epoch)
            return run.accumulate

        return next_size

    def at(self, iteration: int, epoch: int) -> int:
        """Return the microbatches of the iteration that follows so many, in an epoch."""
        by_epoch = self.milestones.unit == "epochs"
        return int(self.milestones.at(epoch if by_epoch else iteration))

    def iters(self, batches: int, iteration: int, epoch: int) -> int:
        """Return how many iterations so many batches of one epoch make, from an iteration on."""
        milestones, done = self.milestones, 0
        # Only a change in iterations can come while they are read.
        changes = [] if milestones.unit == "epochs" else milestones.moments
        for change in changes:
            size, steps = self.at(iteration + done, epoch), change - iteration - done
            if steps > 0 and steps * size < batches:
                done, batches = done + steps, batches - steps * size
        return done - (-batches // self.at(iteration + done, epoch))

    def iters_of_epochs(self, batches: int, epochs: int) -> int:
        """Return how many iterations a run of whole epochs makes."""
        total, last = 0, self.milestones.moments[-1]
        for epoch in range(epochs):
            length = self.iters(batches, total, epoch)
            if (epoch if self.milestones.unit == "epochs" else total) >= last:
                return total + length * (epochs - epoch)  # Nothing changes any more.
            total += length
        return total


def _read(accumulate: object) -> Milestones:
    if accumulate == AUTO:
        return Milestones((0,), (1,), "iters")
    if isinstance(accumulate, bool) or not isinstance(accumulate, Integral | Mapping):
        raise ModelError(
            f"accumulate={accumulate!r}: it must be a whole number, such as accumulate=4, a "
            "mapping such as {0: 1, '5 epochs': 4}, or 'auto'.",
            argument="accumulate",
        )
    given = accumulate if isinstance(accumulate, Mapping) else {0: int(accumulate)}
    for key, value in given.items():
        at = f" at {key!r}" if isinstance(accumulate, Mapping) else ""
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise ModelError(
                f"accumulate={value!r}{at}: it must be a whole number.", argument="accumulate"
            )
        if value < 1:
            raise ModelError(
                f"accumulate must be at least 1, not {value}{at}.", argument="accumulate"
            )
    try:
        milestones = Milestones.parse({key: int(value) for key, value in given.items()})
    except IntervalError as error:
        raise ModelError(f"accumulate: {error}", argument="accumulate") from error
    if milestones.unit not in ("iters", "epochs"):
        raise ModelError(
            f"accumulate changes after iterations or epochs, not after {milestones.unit}.",
            argument="accumulate",
        )
    return milestones
