"""Hooks -> verified, ordered calls per mount point, built once.

Whatever is wrong with a hook is said here, before training starts. What remains for the loop is
`fire`: a walk over a tuple of calls, in which hooks that do not act at a point do not occur.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from time import monotonic
from typing import TYPE_CHECKING

from hookloop.core.checks import check_contract, check_hook, check_names
from hookloop.core.hook import Call, Hook, acts_at, interval_at, kind_of, method_of, priority_of
from hookloop.core.points import Point, PointTable
from hookloop.data.side_randomness import Observers
from hookloop.errors import HookError
from hookloop.every import Every

if TYPE_CHECKING:
    from hookloop.core.run import Run

Wrapper = Callable[[Call, Hook, str], Call]
"""Makes another call of a call, its hook and its point; to measure hooks, for example."""

_log = logging.getLogger("hookloop")


@dataclass(frozen=True)
class Disabled:
    """A hook that failed and is left out for the rest of the run: where, and why."""

    hook: str
    point: str
    error: str

    def __str__(self) -> str:
        return f"{self.hook} failed at {self.point}: {self.error}"


class Calls(tuple[Call, ...]):
    """What a point's firing calls, with the point and the hook behind each call for error notes."""

    point: Point
    owners: tuple[Hook, ...]
    entries: tuple[tuple[Call, Hook], ...]

    @classmethod
    def of(cls, point: Point, entries: Iterable[tuple[Call, Hook]], *, apart: bool = True) -> Calls:
        """Bundle calls with their owners; those that may draw random numbers are set apart."""
        pairs = tuple(entries)
        calls = cls(_set_apart(point, pairs) if apart else (call for call, _ in pairs))
        calls.point, calls.entries = point, pairs
        calls.owners = tuple(owner for _, owner in pairs)
        return calls

    def singly(self, *, apart: bool = True) -> list[Calls]:
        """Return the calls to be fired one by one."""
        return [Calls.of(self.point, [entry], apart=apart) for entry in self.entries]


def _apart(point: Point, *entries: tuple[Call, Hook]) -> Call:
    """Make one call of those of hooks that only observe, and may draw random numbers."""
    if not any(_draws(hook) for _, hook in entries):
        return entries[0][0]
    calls = Calls.of(point, entries, apart=False)
    each = [(one.owners[0].name, partial(fire, one)) for one in calls.singly(apart=False)]
    observers = Observers(point.name, point.is_busy, partial(fire, calls), each)
    begins_run, begins_epoch = point.name == "before_train", point.ahead and point.clock == "epochs"

    def call(run: Run, *args: object) -> None:
        at = run.progress.iter  # Or, where a resume fires again, when it was fired first.
        if begins_run or begins_epoch:
            at = 0 if begins_run else at - run.progress.iter_in_epoch
        run.side_randomness.call_observers(observers, (run.phase, at), run, *args)

    return call


def _set_apart(point: Point, entries: Sequence[tuple[Call, Hook]]) -> Iterator[Call]:
    """Put neighbours that may draw into one call, along with those between them that do not."""
    for takes_part, stretch in groupby(entries, lambda entry: entry[1].takes_part_in_training):
        run = list(stretch)
        # A call with a schedule is set apart by itself, when it is due.
        draw = [n for n, (_, one) in enumerate(run) if _draws(one) and not interval_at(one, point)]
        if takes_part or not draw:
            yield from (call for call, _ in run)
        else:
            yield from (call for call, _ in run[: draw[0]])
            yield _apart(point, *run[draw[0] : draw[-1] + 1])
            yield from (call for call, _ in run[draw[-1] + 1 :])


def call_of(hook: Hook, point: Point, alone: Callable[[tuple[Call, Hook]], Call]) -> Call | None:
    """Return what a firing calls, or None for nothing; ``alone`` wraps a call that is due."""
    method = method_of(hook, point.name)
    schedule = interval_at(hook, point)
    if method is None or schedule is None:
        return method
    return _limited(alone((method, hook)), schedule, int(point.ahead))


def _limited(method: Call, schedule: Every, ahead: int) -> Call:
    """Wrap a method so that it acts only when its schedule says so."""
    count = schedule.count

    if schedule.unit == "seconds":
        last = monotonic()

        def when_time_has_passed(run: Run, *args: object) -> None:
            nonlocal last
            if (now := monotonic()) - last >= count:
                last = now
                method(run, *args)

        return when_time_has_passed

    if schedule.unit == "epochs":

        def when_epoch_is_due(run: Run, *args: object) -> None:
            if (run.progress.epoch + ahead) % count == 0:
                method(run, *args)

        return when_epoch_is_due

    def when_iter_is_due(run: Run, *args: object) -> None:
        if (run.progress.iter + ahead) % count == 0:
            method(run, *args)

    return when_iter_is_due


def _draws(hook: Hook) -> bool:
    return hook.draws_random_numbers and not hook.takes_part_in_training


def fire(calls: Calls, run: Run, *args: object) -> None:
    """Make a point's calls in order; a failing hook is named in a note on its exception."""
    for call in calls:
        try:
            if args:
                call(run, *args)
            else:  # The common case: half the cost of a call with a starred tuple.
                call(run)
        except Exception as error:
            owner = next((hook for one, hook in calls.entries if one is call), None)
            if owner is None:  # Calls that were set apart: the note is there.
                raise
            note = f"raised by the hook '{owner.name}' ({kind_of(owner)}) at {calls.point.name}"
            if note not in getattr(error, "__notes__", ()):
                error.add_note(note)
            # Only a failure at work is survived; a hook that was set up wrongly says so at start.
            if owner.on_error != "disable" or isinstance(error, HookError):
                raise
            run.plan.disable(owner, calls.point.name, error)


class Plan:
    """The calls of every point, as attributes named after the points: ``plan.before_run``.

    Raises:
        HookError: If a hook is misspelt, out of order, shares its name or has a wrong signature.
    """

    if TYPE_CHECKING:  # The attributes are set from the table, which alone lists the names.

        def __getattr__(self, point: str) -> Calls: ...

    def __init__(
        self, hooks: Sequence[Hook], points: PointTable, produced: Iterable[str] = ()
    ) -> None:
        self.points = points
        for hook in hooks:
            check_hook(hook, points)
        check_names(hooks)
        self.hooks = tuple(sorted(hooks, key=priority_of))
        check_contract([(h, acts_at(h, points)) for h in self.hooks], frozenset(produced))
        self.disabled: list[Disabled] = []
        self._wrappers: list[Wrapper] = []
        self._compile()

    def _compile(self) -> None:
        for point in self.points.values():
            alone = partial(_apart, point)
            entries = [(c, one) for one in self.hooks if (c := call_of(one, point, alone))]
            for wrapper in self._wrappers:
                entries = [(wrapper(call, hook, point.name), hook) for call, hook in entries]
            setattr(self, point.name, Calls.of(point, entries))

    def calls(self, point: str) -> Calls:
        """Look a point's calls up by name, for points that a project declared."""
        calls: Calls = getattr(self, self.points[point].name)
        return calls

    def wrap(self, wrapper: Wrapper) -> None:
        """Wrap every call from now on; a plan without wrappers is as fast as if there were none."""
        self._wrappers.append(wrapper)
        self._compile()

    def add(self, *hooks: Hook) -> None:
        """Take further hooks in during a run; they act from the next firing on."""
        for hook in hooks:
            check_hook(hook, self.points)
        check_names([*self.hooks, *hooks])
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
        self.hooks = tuple(other for other in self.hooks if other is not hook)
        self._compile()
