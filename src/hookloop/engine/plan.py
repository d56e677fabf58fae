"""Hooks -> verified, ordered calls per mount point, built once.

Whatever is wrong with a hook is reported here, before training starts. What is left for the loop is
`fire`: a walk over a tuple of calls, in which hooks that do not act at a point do not occur.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from hookloop.data.random.observers import ObserverCalls
from hookloop.engine.checks import (
    check_hook,
    check_names,
    check_owners,
    check_reads_and_writes,
)
from hookloop.engine.hook import Call, Hook, acts_at, interval_at, kind_of, method_of, priority_of
from hookloop.engine.points import MountPoints, Point, PointTable
from hookloop.errors import HookError
from hookloop.every import limited
from hookloop.outcome import Disabled

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

    It is made when a plan has hooks that only observe and may draw; without such a firing knows
    nothing of it.

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
        run._internals.observer_randomness.call_observers(observers, (run.phase, at), run, *args)

    return call


Wrapper = Callable[[Call, Hook, str], Call]
"""Returns a call to make instead, given a call, its hook and its point; to time hooks, say."""

_log = logging.getLogger("hookloop")


class Calls(tuple[tuple[Call, Hook | None], ...]):
    """What a firing calls, in order, each with the hook that it belongs to.

    Hooks that may draw random numbers share one call, which belongs to no single hook. It fires
    calls of its own, and those name the hook that fails.

    Attributes:
        point: The mount point.
        entries: The call of every hook by itself.
    """

    point: Point
    entries: tuple[tuple[Call, Hook], ...]

    @classmethod
    def of(cls, point: Point, entries: Iterable[tuple[Call, Hook]], *, apart: bool = True) -> Calls:
        """Bundle calls; with ``apart``, those that may draw random numbers are set apart."""
        pairs = tuple(entries)
        calls = cls(grouped(point, pairs, with_own_randomness) if apart else pairs)
        calls.point, calls.entries = point, pairs
        return calls

    @property
    def hooks(self) -> tuple[Hook, ...]:
        """The hooks that act here, in order."""
        return tuple(hook for _, hook in self.entries)

    def singly(self, *, apart: bool = True) -> list[Calls]:
        """Return the calls to be fired one by one."""
        return [Calls.of(self.point, [entry], apart=apart) for entry in self.entries]


def fire(calls: Calls, run: Run, *args: object) -> None:
    """Make a point's calls in order; a failing hook is named in a note on its exception."""
    for call, hook in calls:
        try:
            if args:
                call(run, *args)
            else:  # The common case: half the cost of a call with a starred tuple.
                call(run)
        except Exception as error:
            if hook is None:  # The calls within have named the hook.
                raise
            note = f"raised by the hook '{hook.name}' ({kind_of(hook)}) at {calls.point.name}"
            if note not in getattr(error, "__notes__", ()):
                error.add_note(note)
            # A HookError reports a hook that was set up wrongly, which no policy may hide.
            if hook.on_error != "disable" or isinstance(error, HookError):
                raise
            run._plan.disable(hook, calls.point.name, error)


class Plan(MountPoints):
    """The calls of every point, as attributes named after the points: ``plan.before_run``.

    Args:
        hooks: The hooks of the run, in the order given.
        points: The mount points of the run.
        produced: Metrics that the engine itself writes.
        is_first: Whether this is the first rank, or the only one. Others leave out the hooks that
            run on the first rank alone.

    Raises:
        HookError: If a hook is misspelled, out of order, shares its name or has a wrong signature.
    """

    def __init__(
        self,
        hooks: Sequence[Hook],
        points: PointTable,
        produced: Iterable[str] = (),
        *,
        is_first: bool = True,
    ) -> None:
        self.points = points
        self._is_first = is_first
        for hook in hooks:
            check_hook(hook, points)
        check_names(hooks)
        check_owners(hooks)
        self.hooks = tuple(sorted(hooks, key=priority_of))  # Stable: ties stay as given.
        acting = [(hook, acts_at(hook, points)) for hook in self.hooks]
        self.produced = frozenset(produced)
        check_reads_and_writes(acting, self.produced)
        self.disabled: list[Disabled] = []
        self._wrappers: list[Wrapper] = []
        self._made: dict[tuple[int, str], Call | None] = {}
        self._compile()

    def _call(self, hook: Hook, point: Point) -> Call | None:
        # Made once: an interval in time must not start again when another hook comes or goes.
        key = id(hook), point.name
        if key not in self._made:
            acts_here = self._is_first or (hook.ranks == "all" and not _by_clock(hook, point))
            self._made[key] = _call_of(hook, point) if acts_here else None
        return self._made[key]

    def _compile(self) -> None:
        for point in self.points.values():
            calls = [(call, hook) for hook in self.hooks if (call := self._call(hook, point))]
            for wrapper in self._wrappers:
                calls = [(wrapper(call, hook, point.name), hook) for call, hook in calls]
            setattr(self, point.name, Calls.of(point, calls))  # Shadows the row of the table.

    def calls(self, point: str) -> Calls:
        """Look up a point's calls by name, for points that a project declared."""
        calls: Calls = getattr(self, self.points[point].name)
        return calls

    def wrap(self, wrapper: Wrapper) -> None:
        """Wrap every call from now on; without wrappers a plan costs what it did before."""
        self._wrappers.append(wrapper)
        self._compile()

    def unwrap(self, wrapper: Wrapper) -> None:
        """Take back a `wrap`."""
        self._wrappers.remove(wrapper)
        self._compile()

    def add(self, *hooks: Hook) -> None:
        """Add hooks during a run; they act from the next firing on."""
        for hook in hooks:
            check_hook(hook, self.points)
        check_names([*self.hooks, *hooks])
        check_owners([*self.hooks, *hooks])
        self.hooks = tuple(sorted([*self.hooks, *hooks], key=priority_of))
        self._compile()

    def disable(self, hook: Hook, point: str, error: BaseException) -> None:
        """Continue without a hook that failed and whose failure does not matter enough to stop."""
        reason = f"{type(error).__name__}: {error}"
        _log.warning(
            "The hook '%s' failed at %s and is switched off for the rest of the run: %s",
            hook.name,
            point,
            reason,
        )
        self.disabled.append(Disabled(hook.name, point, reason))
        # By identity: two hooks may be equal. The tuple that is being fired is not changed.
        self.hooks = tuple(other for other in self.hooks if other is not hook)
        self._compile()


# --- intervals: a hook that acts only now and then ----------------------------------------------


def _by_clock(hook: Hook, point: Point) -> bool:
    """Return whether a clock decides when a hook acts; that of the first rank counts."""
    interval = interval_at(hook, point) if method_of(hook, point.name) else None
    return interval is not None and interval.unit == "seconds"


def _call_of(hook: Hook, point: Point) -> Call | None:
    """Return what a firing of a point calls of a hook, or None for nothing."""
    method = method_of(hook, point.name)
    interval = interval_at(hook, point)
    if method is None or interval is None:
        return method
    # Set apart within the interval, so that firings at which it is not due cost one comparison.
    return limited(with_own_randomness(point, (method, hook)), interval, int(point.ahead))


def with_own_randomness(point: Point, *entries: tuple[Call, Hook]) -> Call:
    """Return one call of hooks; those that may draw get random numbers of their own."""
    if not any(may_draw(hook) for _, hook in entries):
        return entries[0][0]
    calls = Calls.of(point, entries, apart=False)
    each = [(one.hooks[0].name, partial(fire, one)) for one in calls.singly(apart=False)]
    return lend_randomness(point, partial(fire, calls), each)
