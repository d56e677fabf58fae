"""What hooks request of the loop, until it is done."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from hookloop.checkpoint.saving.request import Save
from hookloop.runs.checkpoint_names import name_at

if TYPE_CHECKING:
    from hookloop.checkpoint.store.index import Saved

Wanted = bool | frozenset[str]
"""Which validation streams to run: all, none, or those with these names."""


@dataclass(frozen=True)
class Stop:
    """A request to end the training: why, and by which signal if by one."""

    reason: str
    signal: int | None = None


@dataclass(frozen=True)
class Rewind:
    """A request to go back to an earlier checkpoint of the run, and to continue from there.

    Attributes:
        to: The run goes back to its newest checkpoint of at most this many iterations; without
            one it fails.
        skip: Iterations whose batches are left out when they come again.
        reason: Why, for the log and the record of the rewind.
        read_again: Data that was left out and is not any more, by the numbers that iterations have
            where nothing is left out.
    """

    to: int
    skip: tuple[int, ...] = ()
    reason: str = ""
    read_again: tuple[int, ...] = ()


def both(one: Wanted, other: Wanted) -> Wanted:
    """Return what two requests for a validation ask for together."""
    if isinstance(one, frozenset) and isinstance(other, frozenset):
        return one | other
    return one is True or other is True or one or other


def without(wanted: Wanted, done: Wanted, streams: Iterable[str]) -> Wanted:
    """Return which of the wanted streams are left if some are done.

    >>> without(True, frozenset({"a"}), ["a", "b"])
    frozenset({'b'})
    >>> without(frozenset({"a"}), True, ["a", "b"])
    False
    """
    names = wanted if isinstance(wanted, frozenset) else frozenset(streams if wanted else ())
    taken = done if isinstance(done, frozenset) else frozenset(streams if done else ())
    left = names - taken
    return wanted if left == names and left else left or False


@dataclass(slots=True)
class Requests:
    """What hooks requested and the loop has not done yet."""

    stop: Stop | None = None
    rewind: Rewind | None = None
    validate: Wanted = False
    planned: Wanted = False  # Which of these a plan of iterations or epochs asks for.
    saves: list[Save] = field(default_factory=list)
    news: list[Saved] = field(default_factory=list)  # Checkpoints that have become durable.
    calls: deque[Callable[[Any], object]] = field(default_factory=deque)  # To make between iters.
    any: bool = False  # Whether there is anything, so that the loop reads one attribute per iter.

    def sendable(self) -> Requests:
        """Return these requests without what only this process can call."""
        return replace(self, saves=[replace(save, on_lost=None) for save in self.saves])

    def add(self, wish: Requests, iteration: int) -> None:
        """Add what one rank wishes to what all ranks do, after this iteration."""
        self.stop = self.stop or wish.stop  # The first reason counts.
        self.rewind = self.rewind or wish.rewind
        self.validate = both(self.validate, wish.validate)
        self.planned = both(self.planned, wish.planned)
        for save in wish.saves:
            named = replace(save, name=name_at(save.name, iteration))
            if named not in self.saves:
                self.saves.append(named)
        self.news += wish.news
        self.calls += wish.calls
        self.any = self.any or wish.any
