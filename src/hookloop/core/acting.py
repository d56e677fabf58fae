"""What one hook does at one mount point: its method there, and the schedule that limits it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import monotonic
from typing import TYPE_CHECKING

from hookloop.core.hook import Hook
from hookloop.core.points import Point
from hookloop.core.priority import Priority
from hookloop.errors import HookError
from hookloop.every import Every

if TYPE_CHECKING:
    from hookloop.core.run import Run

Call = Callable[..., None]


def acts_at(hook: Hook, points: Mapping[str, Point]) -> list[str]:
    """Name the points at which a hook does something."""
    return [name for name, point in points.items() if method_of(hook, point.name)]


def method_of(hook: Hook, point: str) -> Call | None:
    """Return the hook's method at a point, unless it is the base's empty one."""
    method: Call | None = getattr(hook, point, None)
    if method is None or getattr(method, "__func__", None) is getattr(Hook, point, hook):
        return None
    return method


def call_of(hook: Hook, point: Point, alone: Callable[[tuple[Call, Hook]], Call]) -> Call | None:
    """Return what a firing calls, or None for nothing; ``alone`` wraps a call that is due."""
    method = method_of(hook, point.name)
    schedule = schedule_of(hook, point)
    if method is None or schedule is None:
        return method
    return _limited(alone((method, hook)), schedule, int(point.ahead))


def schedule_of(hook: Hook, point: Point) -> Every | None:
    """Find what limits a hook at a point: the method's own schedule, or the hook's in that unit."""
    own: Every | None = getattr(method_of(hook, point.name), "every", None)
    if own is not None or hook.every is None:
        return own
    schedule = Every.parse(hook.every)
    fits = point.clock if schedule.unit == "seconds" else point.clock == schedule.unit
    return schedule if fits else None


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


def priority_of(hook: Hook) -> int:
    """Read a hook's priority as a number."""
    try:
        return Priority.parse(hook.priority)
    except HookError as error:
        raise HookError(f"{kind_of(hook)}.priority: {error}") from error


def kind_of(hook: Hook) -> str:
    """Name a hook's class, for messages; of an adapted one that which its author wrote."""
    return type(getattr(hook, "foreign", hook)).__name__
