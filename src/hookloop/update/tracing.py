"""What fires in a training, and how long it takes: the engine's parts, the points, the hooks.

The times of the hooks are those of this process: what a device does later is not waited for.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from time import perf_counter
from typing import TYPE_CHECKING

from hookloop.engine.hook import Call, Hook, Priority, acts_at, interval_at
from hookloop.engine.points import POINTS, Point
from hookloop.every import Every
from hookloop.update.probe import LooksOnly, StateLines

if TYPE_CHECKING:
    from hookloop.engine.run import Run

SPANS = {
    ("before_train_iter", "before_forward"): "begin",
    ("before_forward", "after_forward"): "forward",
    ("after_forward", "after_loss"): "loss",
    ("after_loss", "after_backward"): "backward",
    ("after_backward", "before_forward"): "next microbatch",
    ("after_backward", "before_update"): "reduce",
    ("before_update", "after_update"): "step",
    ("after_update", "before_forward"): "next update",
    ("after_update", "after_train_iter"): "end",
    ("after_train_iter", "before_train_iter"): "data",
    ("before_train_epoch", "before_train_iter"): "data",
    ("before_val_iter", "before_forward"): "begin",
    ("after_loss", "after_val_iter"): "end",
    ("after_forward", "after_val_iter"): "end",
    ("after_val_iter", "before_val_iter"): "data",
    ("before_val_epoch", "before_val_iter"): "data",
}
"""What the engine does between two points that fire one after the other."""

SHOWN = 4
"""How many things that a call wrote are shown in a line."""

LEAST = 2e-5
"""Seconds above which a call with an interval of time is taken for one that was due."""


@dataclass(frozen=True)
class Event:
    """Something that took time.

    Attributes:
        kind: ``engine``, ``point`` or ``hook``.
        name: The part of the engine, the mount point, or the hook.
        point: The mount point, of a hook.
        iter: The iteration under way, or the last one completed between two of them.
        phase: ``train``, ``val``, ...
        start: When it began, in seconds since the trace began.
        seconds: How long it took.
        metrics: The metrics that a hook has put into the store.
        wrote: What else it has changed, by kind and name, if that was asked for.
    """

    kind: str
    name: str
    point: str
    iter: int
    phase: str
    start: float
    seconds: float
    metrics: tuple[str, ...] = ()
    wrote: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Silent:
    """A hook that never fired.

    Attributes:
        hook: Its name.
        reason: Why, as far as that is known.
    """

    hook: str
    reason: str


@dataclass
class Trace:
    """What fired in some iterations.

    Attributes:
        events: In the order in which they began.
        silent: The hooks that never fired.
        first: The first iteration.
        last: The last one.
        seconds: When the last iteration ended, since the trace began.
        warm: When the first one ended, or began if it is the only one.
        left_out: Hooks that were left out, each with the reason.
    """

    events: list[Event] = field(default_factory=list)
    silent: list[Silent] = field(default_factory=list)
    first: int = 0
    last: int = 0
    seconds: float = 0.0
    warm: float = 0.0
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def firings(self) -> list[Event]:
        """The calls of hooks."""
        return [one for one in self.events if one.kind == "hook"]

    def costs(self) -> dict[str, tuple[int, float, float]]:
        """Return calls, seconds and share of the time, by hook, the dearest first.

        What begins and ends a run is left out, and so is the first iteration, in which much is
        done for the first time.
        """
        spent: dict[str, list[float]] = {}
        for one in self.firings:
            row = spent.setdefault(one.name, [0, 0.0])
            is_counted = one.point not in ONCE and self.warm <= one.start
            row[0] += 1
            row[1] += one.seconds if is_counted else 0.0
        rows = sorted(spent.items(), key=lambda row: -row[1][1])
        whole = self.seconds - self.warm or 1.0
        return {name: (int(calls), took, took / whole) for name, (calls, took) in rows}

    def tree(self) -> list[str]:
        """Return the firings as lines; iterations in which the same fired stand together."""
        groups = [
            (key, [list(steps) for _, steps in groupby(events, key=_moment_of)])
            for key, events in groupby(self.events, key=lambda one: (one.iter, one.phase))
        ]
        lines: list[str] = []
        for _, same in groupby(groups, key=lambda one: (one[0][1], _signature(one[1]))):
            alike = list(same)
            (first, phase), (last, _) = alike[0][0], alike[-1][0]
            which = f"iteration {first}" if first == last else f"iterations {first} to {last}, mean"
            lines.append(f"{phase}, {which}")
            events = [[one for step in steps for one in step] for _, steps in alike]
            lines += [_shown(column) for column in zip(*events, strict=True)]
        return lines

    def chrome(self) -> dict[str, object]:
        """Return the trace in the format of Chrome and Perfetto."""
        process = os.getpid()
        events: list[dict[str, object]] = [
            {"ph": "M", "name": "thread_name", "pid": process, "tid": 1,
             "args": {"name": "hookloop"}},
        ]  # fmt: skip
        for one in self.events:
            arguments: dict[str, object] = {"iter": one.iter, "phase": one.phase}
            if one.kind == "hook":
                arguments |= {"point": one.point, "metrics": list(one.metrics)}
                arguments |= {"wrote": [f"{k} {n}" for k, n in one.wrote]} if one.wrote else {}
            events.append({
                "ph": "X", "name": one.name, "cat": one.kind, "pid": process, "tid": 1,
                "ts": round(one.start * 1e6, 3), "dur": round(one.seconds * 1e6, 3),
                "args": arguments,
            })  # fmt: skip
        return {"traceEvents": events, "displayTimeUnit": "ms"}


ONCE = ("before_run", "before_train", "after_train", "after_run", "after_load_checkpoint")
"""Points that fire once in a run."""


def _moment_of(one: Event) -> str:
    return one.point or one.name


def _signature(steps: Sequence[Sequence[Event]]) -> tuple[object, ...]:
    return tuple((one.kind, one.name, one.metrics, one.wrote) for step in steps for one in step)


def _shown(column: Sequence[Event]) -> str:
    one = column[0]
    took = sum(each.seconds for each in column) / len(column)
    said = [*one.metrics, *(f"{kind} {name}" for kind, name in one.wrote)]
    more = f" and {len(said) - SHOWN} more" if len(said) > SHOWN + 1 else ""
    shown = said[:SHOWN] if more else said
    wrote = f"  -> {', '.join(shown)}{more}" if said else ""
    indent = {"engine": "  ", "point": "  ", "hook": "    "}[one.kind]
    name = f"({one.name})" if one.kind == "engine" else one.name
    return f"{indent + name:<40}{_milliseconds(took):>12}{wrote}"


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3f} ms"


class Tracer:
    """Traces a training; `hooks` are to be given to the run.

    Args:
        first: The first iteration that is traced, with what comes right before it.
        last: The last one.
        writes: Whether to find out what each call changes, which takes longer than the calls.
    """

    def __init__(self, *, first: int = 1, last: int | None = None, writes: bool = False) -> None:
        self.trace = Trace()
        self._first, self._last = first, last
        self._writes = writes
        self._begun = perf_counter()
        self._open: dict[str, int] = {}
        self._left = ("", 0)
        self._before: tuple[str, float] | None = None
        self._looking = 0.0
        self._acting: dict[str, list[str]] = {}
        self._intervals: dict[tuple[str, str], Every] = {}
        self._fired: Counter[str] = Counter()
        self._points: Counter[str] = Counter()
        self.hooks: tuple[Hook, ...] = (
            _Edge("trace_begin", Priority.HIGHEST, self._enter, self._prepare),
            _Edge("trace_end", Priority.LOWEST, self._leave),
        )

    def _now(self) -> float:
        """Return the time without what the looking itself took."""
        return perf_counter() - self._begun - self._looking

    def _is_on(self, run: Run) -> bool:
        done = run.progress.iter
        return self._first - 1 <= done and (self._last is None or done <= self._last)

    def _prepare(self, run: Run) -> None:
        run._plan.wrap(self._wrapped)
        for hook in run._plan.hooks:
            if not _is_ours(hook):
                self._acting[hook.name] = acts_at(hook, run._plan.points)

    def _enter(self, point: str, run: Run) -> None:
        if point in self._open:  # A hook of the same priority came first.
            return
        now = self._now()
        self._left = ("", 0)
        if not self._is_on(run):
            self._before = None
            return
        if self._before is not None and (part := SPANS.get((self._before[0], point))):
            since = self._before[1]
            # What the engine does for an iteration belongs to it, its data too.
            is_next = run.phase == "train" and point != "after_train_iter"
            number = run.progress.iter + is_next
            self._add(Event("engine", part, "", number, run.phase, since, now - since))
        if point == "before_train_iter" and not self.trace.warm:
            self.trace.warm = self._before[1] if self._before is not None else now
        self._open[point] = len(self.trace.events)
        self._points[point] += 1
        self._add(Event("point", point, point, _number(run, point), run.phase, now, 0.0))

    def _leave(self, point: str, run: Run) -> None:
        now = self._now()
        place = self._open.pop(point, None)
        if place is None:
            return
        one = self.trace.events[place]
        if not any(each.kind == "hook" for each in self.trace.events[place:]):
            del self.trace.events[place]  # Nobody acts there.
        else:
            self.trace.events[place] = replace(one, seconds=now - one.start)
            self._left = (point, place)
        self._before = (point, now)
        if point == "after_train_iter":
            if self.trace.first and self.trace.last == self.trace.first:
                self.trace.warm = self.trace.seconds
            self.trace.first = self.trace.first or run.progress.iter
            self.trace.last = run.progress.iter
            self.trace.seconds = now

    def _stretch(self, point: str, end: float) -> None:
        """Let a point last until the end of a call that came after those of its priority."""
        if point == self._left[0]:
            one = self.trace.events[self._left[1]]
            self.trace.events[self._left[1]] = replace(one, seconds=end - one.start)

    def _add(self, event: Event) -> None:
        self.trace.events.append(event)

    def _wrapped(self, call: Call, hook: Hook, point: str) -> Call:
        if _is_ours(hook):
            return call

        def traced(run: Run, *args: object) -> None:
            if not self._is_on(run):
                call(run, *args)
                return
            if point != self._left[0]:
                self._enter(point, run)
            begun = perf_counter()
            row = run._plan.points[point]
            interval = interval_at(hook, row)
            is_due = _is_due(interval, row, run)
            before = _counts(run)
            state = self._state(run, hook) if is_due is not False else {}
            self._looking += perf_counter() - begun
            since = self._now()
            try:
                call(run, *args)
            finally:
                seconds = self._now() - since
                begun = perf_counter()
                if is_due is None:
                    is_due = seconds > LEAST
                if is_due:
                    after = _counts(run)
                    metrics = tuple(n for n in after if after[n] != before.get(n))
                    wrote = _changed(state, self._state(run, hook)) if state else ()
                    number = _number(run, point)
                    self._fired[hook.name] += 1
                    self._stretch(point, since + seconds)
                    self._add(Event("hook", hook.name, point, number, run.phase, since, seconds,
                                    metrics, wrote))  # fmt: skip
                elif interval is not None:
                    self._intervals[hook.name, point] = interval
                self._looking += perf_counter() - begun

        return traced

    def _state(self, run: Run, hook: Hook) -> dict[tuple[str, str], str]:
        if not self._writes:
            return {}
        lines = StateLines(run)
        is_lent = hook.draws_random_numbers and not hook.takes_part_in_training
        return {
            (one.kind, one.name): one.digest
            for one in (*lines.whole(""), *lines.moment(""))
            if not (is_lent and one.kind == "generator")
        }

    def close(self) -> Trace:
        """Name the hooks that never fired; return the trace."""
        for hook, points in self._acting.items():
            if not self._fired[hook]:
                self.trace.silent.append(Silent(hook, self._why_silent(hook, points)))
        return self.trace

    def _why_silent(self, hook: str, points: Sequence[str]) -> str:
        reached = [one for one in points if self._points[one]]
        if not points:
            return "it acts at no point"
        if not reached:
            return f"it acts at {', '.join(points)}, which did not fire"
        said = {
            str(self._intervals[hook, one]) for one in reached if (hook, one) in self._intervals
        }
        return f"it acts every {' and '.join(sorted(said))}" if said else "it was switched off"


class _Edge(LooksOnly):
    """Marks the beginning or the end of every point."""

    def __init__(
        self,
        name: str,
        priority: Priority,
        mark: Callable[[str, Run], None],
        prepare: Callable[[Run], None] | None = None,
    ) -> None:
        self.name, self.priority = name, priority
        self._prepare = prepare
        for point in POINTS:
            method = partial(self._at, mark, point.name)
            setattr(self, point.name, method)

    def _at(self, mark: Callable[[str, Run], None], point: str, run: Run, *args: object) -> None:
        if point == "before_run" and self._prepare is not None:
            self._prepare(run)
        mark(point, run)


def _is_ours(hook: Hook) -> bool:
    """Return whether a hook belongs to the short run, and not to the training."""
    return isinstance(hook, LooksOnly) or type(hook).__module__.startswith("hookloop.short_runs")


def _number(run: Run, point: str) -> int:
    """Return the iteration to which a point belongs."""
    row = run._plan.points[point]
    is_within = row.within or (row.ahead and row.clock == "iters")
    return run.progress.iter + (is_within and run.phase == "train")


def _is_due(interval: Every | None, point: Point, run: Run) -> bool | None:
    """Return whether a call with an interval acts now; None if only a clock knows."""
    if interval is None:
        return True
    if interval.unit == "seconds":
        return None
    if interval.unit in ("iters", "epochs"):
        done = run.progress.iter if interval.unit == "iters" else run.progress.epoch
        return (done + int(point.ahead)) % int(interval.count) == 0
    return interval.due(run.progress)


def _counts(run: Run) -> dict[str, int]:
    return run.metrics.counts(run.metrics.names())


def _changed(
    before: Mapping[tuple[str, str], str], after: Mapping[tuple[str, str], str]
) -> tuple[tuple[str, str], ...]:
    names = dict.fromkeys([*before, *after])
    return tuple(one for one in names if before.get(one) != after.get(one))


def over_budget(trace: Trace, budgets: Mapping[str, float]) -> Iterable[tuple[str, float, float]]:
    """Yield the hooks that cost more than they may: name, share, and what it may be.

    Args:
        trace: The trace.
        budgets: Shares of the time by hook; ``""`` is that of all hooks together.
    """
    costs = trace.costs()
    for name, most in budgets.items():
        whole = sum(share for _, _, share in costs.values())
        share = whole if not name else costs.get(name, (0, 0.0, 0.0))[2]
        if share > most:
            yield name or "all hooks together", share, most
