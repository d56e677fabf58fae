"""Hooks that only observe draw random numbers of their own, see `data.random.observers`.

A plan that has such hooks calls them through a wrapper, which is made when it is compiled. Without
them, a firing knows nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from hookloop.data.random.observers import ObserverCalls
from hookloop.engine.hook import Call, Hook, interval_at
from hookloop.engine.points import Point

if TYPE_CHECKING:
    from hookloop.engine.run import Run

Entry = tuple[Call, Hook]


def may_draw(hook: Hook) -> bool:
    """Return whether a hook only observes, and may draw random numbers."""
    return hook.draws_random_numbers and not hook.takes_part_in_training


def grouped(
    point: Point, entries: Sequence[Entry], join: Callable[..., Call]
) -> Iterator[tuple[Call, Hook | None]]:
    """Put neighbours that may draw into one call, with those between them that do not.

    To lend them the generators costs microseconds each time, so all of a point borrow them once.

    Args:
        point: The mount point.
        entries: The call of every hook by itself.
        join: Makes one call of several entries of a point.
    """
    for takes_part, neighbours in groupby(entries, lambda entry: entry[1].takes_part_in_training):
        stretch = list(neighbours)
        # A call with an interval is set apart by itself, when it is due.
        drawing = [
            position
            for position, (_, hook) in enumerate(stretch)
            if may_draw(hook) and not interval_at(hook, point)
        ]
        if takes_part or not drawing:
            yield from stretch
        else:
            yield from stretch[: drawing[0]]
            yield join(point, *stretch[drawing[0] : drawing[-1] + 1]), None
            yield from stretch[drawing[-1] + 1 :]


def lend_randomness(
    point: Point, together: Callable[..., object], each: Sequence[tuple[str, Callable[..., object]]]
) -> Call:
    """Return a call that lends hooks random numbers of their own while they act.

    Args:
        point: The mount point.
        together: Calls them all.
        each: Calls one of them, by name.
    """
    observers = ObserverCalls(point.name, point.is_busy, together, each)
    begins_run, begins_epoch = point.name == "before_train", point.ahead and point.clock == "epochs"

    def call(run: Run, *args: object) -> None:
        # A resume fires these points again: they get the iteration at which they fired first.
        at = run.progress.iter
        if begins_run or begins_epoch:
            at = 0 if begins_run else at - run.progress.iter_in_epoch
        run.observer_randomness.call_observers(observers, (run.phase, at), run, *args)

    return call
