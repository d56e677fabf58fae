"""Hooks -> verified, ordered calls per mount point, built once.

Whatever is wrong with a hook is said here, before training starts. What remains for the loop is
`fire`: a walk over a tuple of calls, in which hooks that do not act at a point do not occur.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from time import monotonic
from typing import TYPE_CHECKING

from hookloop.core.contract import check_contract
from hookloop.core.hook import FunctionHook, Hook
from hookloop.core.points import Point, PointTable
from hookloop.core.priority import Priority
from hookloop.errors import HookError, nearest
from hookloop.every import Every

if TYPE_CHECKING:
    from hookloop.core.run import Run

Call = Callable[..., None]
Wrapper = Callable[[Call, Hook, str], Call]
"""Makes another call of a call, its hook and its point; to measure hooks, for example."""

_log = logging.getLogger("hookloop")


@dataclass(frozen=True)
class Row:
    """One line of the timetable: a hook that acts at a point, and what it declares."""

    point: str
    hook: str
    priority: int
    every: Every | None
    reads: tuple[str, ...]
    writes: tuple[str, ...]


class Calls(tuple[Call, ...]):
    """What a point's firing calls, with the point and the hook behind each call for error notes."""

    point: str
    owners: tuple[Hook, ...]

    @classmethod
    def of(cls, point: str, entries: Iterable[tuple[Call, Hook]]) -> Calls:
        """Bundle calls with their owners; both keep the order given."""
        pairs = tuple(entries)
        calls = cls(call for call, _ in pairs)
        calls.point = point
        calls.owners = tuple(owner for _, owner in pairs)
        return calls

    def only(self, index: int) -> Calls:
        """Return one of the calls, to be fired alone."""
        return Calls.of(self.point, [(self[index], self.owners[index])])


def fire(calls: Calls, run: Run, *args: object) -> None:
    """Make a point's calls in order; a failing hook is named in a note on its exception."""
    for call in calls:
        try:
            if args:
                call(run, *args)
            else:  # The common case: half the cost of a call with a starred tuple.
                call(run)
        except Exception as error:
            owner = calls.owners[calls.index(call)]
            error.add_note(f"raised by the hook '{owner.name}' ({_kind(owner)}) at {calls.point}")
            # Only a failure at work is survived; a hook that was set up wrongly says so at start.
            if owner.on_error != "disable" or isinstance(error, HookError):
                raise
            run.plan.disable(owner, calls.point, error)


def fire_all(calls: Calls, run: Run) -> None:
    """Make a point's calls even if some fail, for the sake of what they have to clean up."""
    failures: list[Exception] = []
    for index in range(len(calls)):
        try:
            fire(calls.only(index), run)
        except Exception as error:  # noqa: BLE001 - raised again below
            failures.append(error)
    if failures:
        raise failures[0]


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
            _check_is_hook(hook)
        _check_names(hooks)
        self.hooks = tuple(sorted(hooks, key=_priority))
        for hook in self.hooks:
            _check_methods(hook, points)
            _check_every(hook, points)
        check_contract([(h, acts_at(h, points)) for h in self.hooks], frozenset(produced))
        self._wrappers: list[Wrapper] = []
        self._compile()

    def _compile(self) -> None:
        for point in self.points.values():
            entries = [(call, hook) for hook in self.hooks if (call := _call_of(hook, point))]
            for wrapper in self._wrappers:
                entries = [(wrapper(call, hook, point.name), hook) for call, hook in entries]
            setattr(self, point.name, Calls.of(point.name, entries))

    def calls(self, point: str) -> Calls:
        """Look a point's calls up by name, for points that a project declared."""
        calls: Calls = getattr(self, self.points[point].name)
        return calls

    def wrap(self, wrapper: Wrapper) -> None:
        """Wrap every call from now on; a plan without wrappers is as fast as if there were none."""
        self._wrappers.append(wrapper)
        self._compile()

    def disable(self, hook: Hook, point: str, error: BaseException) -> None:
        """Go on without a hook that failed and whose failure does not matter enough to stop."""
        _log.warning(
            "The hook '%s' failed at %s and is switched off for the rest of the run: %s: %s",
            hook.name,
            point,
            type(error).__name__,
            error,
        )
        self.hooks = tuple(other for other in self.hooks if other is not hook)
        self._compile()

    def timetable(self) -> list[Row]:
        """List who acts where, in the order of the table and of the calls."""
        return [
            Row(
                point.name,
                hook.name,
                _priority(hook),
                _schedule(hook, point),
                tuple(hook.reads),
                tuple(hook.writes),
            )
            for point in self.points.values()
            for hook in getattr(self, point.name).owners
        ]


def acts_at(hook: Hook, points: Mapping[str, Point]) -> list[str]:
    """Name the points at which a hook does something."""
    return [name for name, point in points.items() if _method(hook, point.name)]


def _method(hook: Hook, point: str) -> Call | None:
    """Return the hook's method at a point, unless it is the base's empty one."""
    method: Call | None = getattr(hook, point, None)
    if method is None or getattr(method, "__func__", None) is getattr(Hook, point, hook):
        return None
    return method


def _call_of(hook: Hook, point: Point) -> Call | None:
    method = _method(hook, point.name)
    schedule = _schedule(hook, point)
    if method is None or schedule is None:
        return method
    return _limited(method, schedule, int(point.ahead))


def _schedule(hook: Hook, point: Point) -> Every | None:
    """Find what limits a hook at a point: the method's own schedule, or the hook's in that unit."""
    own: Every | None = getattr(_method(hook, point.name), "every", None)
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


def _priority(hook: Hook) -> int:
    try:
        return Priority.parse(hook.priority)
    except HookError as error:
        raise HookError(f"{_kind(hook)}.priority: {error}") from error


def _kind(hook: Hook) -> str:
    return type(hook).__name__


def _check_is_hook(hook: object) -> None:
    if isinstance(hook, Hook):
        return
    if isinstance(hook, type) and issubclass(hook, Hook):
        raise HookError(f"{hook.__name__} is a class, not a hook: write {hook.__name__}().")
    raise HookError(
        f"{hook!r} is no hook: subclass hookloop.Hook, or attach a function with "
        "@trainer.on('after_train_iter')."
    )


def _check_names(hooks: Sequence[Hook]) -> None:
    seen: dict[str, Hook] = {}
    for hook in hooks:
        if hook.name in seen:
            raise HookError(
                f"Two hooks are named '{hook.name}' ({_kind(seen[hook.name])} and {_kind(hook)}): "
                f"name one of them, {_kind(hook)}(...).named('{hook.name}_2'), or give hooks as a "
                "mapping from names."
            )
        seen[hook.name] = hook


def _check_methods(hook: Hook, points: PointTable) -> None:
    """Refuse a method that looks like a mount point and is none, and a wrong signature."""
    for name in dir(hook):
        if name.startswith("_") or (hasattr(Hook, name) and name not in points):
            continue
        if name in points:
            _check_signature(hook, points[name])
        # Static, since a property may compute something that is not there yet.
        elif callable(inspect.getattr_static(hook, name, 0)) and _looks_like_point(name, points):
            raise HookError(
                f"{_kind(hook)}.{name}: no such mount point.{nearest(name, points)} 'hookloop "
                f"points' lists all; a method that is no mount point begins with another word."
            )


def _looks_like_point(name: str, points: PointTable) -> bool:
    # `befor_run`, `aftertrain_iter`: a misspelt prefix would else pass for a method of the hook's.
    return name.startswith(("before_", "after_", "on_")) or bool(
        get_close_matches(name, points, 1, 0.85)
    )


def _check_signature(hook: Hook, point: Point) -> None:
    method = _method(hook, point.name)
    if method is None:
        return
    if inspect.iscoroutinefunction(method):
        raise HookError(f"{_kind(hook)}.{point.name} is a coroutine: hooks are plain functions.")
    try:
        signature = inspect.signature(method)
    except ValueError:  # Some builtins have none; the first call will tell.
        return
    try:
        signature.bind(None, *point.args)
    except TypeError as error:
        where = hook.name if isinstance(hook, FunctionHook) else f"{_kind(hook)}.{point.name}"
        raise HookError(
            f"{where} has the signature {signature}, but the mount point calls "
            f"{point.signature}: {error}."
        ) from error


def _check_every(hook: Hook, points: PointTable) -> None:
    """Refuse a schedule that no point of the hook could ever obey."""
    for point in points.values():
        own: Every | None = getattr(_method(hook, point.name), "every", None)
        if own and not (point.clock if own.unit == "seconds" else point.clock == own.unit):
            raise HookError(
                f"{hook.name}: '{own}' cannot limit {point.name}, which "
                + (f"counts {point.clock}." if point.clock else "has no counter.")
            )
    if hook.every is None:
        return
    try:
        schedule = Every.parse(hook.every)
    except ValueError as error:
        raise HookError(f"{_kind(hook)}.every: {error}") from error
    if not any(_schedule(hook, points[name]) for name in acts_at(hook, points)):
        raise HookError(
            f"{_kind(hook)}.every = '{schedule}' limits nothing: the hook acts at "
            f"{', '.join(acts_at(hook, points)) or 'no point'}."
        )
