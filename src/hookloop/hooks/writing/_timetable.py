"""The timetable in a run's directory: who acts where, what that cost, and how hooks stand."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from time import monotonic, perf_counter
from typing import TYPE_CHECKING

from hookloop.engine.hook import Call, Hook, interval_at, kind_of, priority_of
from hookloop.runs.files import write_bytes
from hookloop.runs.layout import RunDir
from hookloop.runs.reading import read_json
from hookloop.runs.records import to_json

if TYPE_CHECKING:
    from hookloop.engine.run import Run

SKIPPED, MEASURED = 10, 20
"""Iterations after each start that are not measured, because they are slower, and that are."""

SELDOM = 5.0
"""Seconds between two updates, unless there is a reason."""

Cost = tuple[int, float]
_log = logging.getLogger("hookloop")


class Timetable:
    """Writes ``hooks.json``, and measures each call in a few iterations after each start.

    The calls are wrapped for that time only: all other iterations cost what they do without it.
    """

    def __init__(self) -> None:
        self._hooks: dict[str, dict[str, object]] = {}
        self._cells: dict[tuple[str, str], int] = {}
        self._spent: dict[tuple[str, str], list[float]] = {}
        self._earlier: tuple[object, dict[tuple[str, str], Cost]] = (None, {})
        self._first = self._last = 0
        self._since = self._seconds = 0.0
        self._began, self._start = perf_counter(), 0
        self._is_wrapped = False
        self._written = 0.0
        self._is_failing = False

    def begin(self, run: Run) -> None:
        """Start to measure, and write the plan."""
        self._hooks, self._cells, self._spent = {}, {}, {}
        self._start, self._began = run.progress.iter, perf_counter()
        self._first = self._start + SKIPPED
        self._last = self._first + MEASURED
        self._since = self._seconds = 0.0
        self._earlier = _read_earlier(run) if self._start else (None, {})
        self.stop(run)
        run._plan.wrap(self._measured)
        self._is_wrapped = True
        self.write(run)

    def stop(self, run: Run) -> None:
        """Leave the calls as they were."""
        if self._is_wrapped:
            run._plan.unwrap(self._measured)
            self._is_wrapped = False

    def update(self, run: Run) -> None:
        """Write again, unless that was done a moment ago."""
        if monotonic() - self._written >= SELDOM:
            self.write(run)

    def write(self, run: Run) -> None:
        """Write the file; a problem is reported once and ends nothing."""
        self._written = monotonic()
        self._look(run)
        measured, costs = self._costs(run)
        content = {
            "points": list(run._plan.points),
            "hooks": list(self._hooks.values()),
            "cells": [
                {
                    "point": point,
                    "hook": hook,
                    "order": order,
                    "calls": costs[point, hook][0] if (point, hook) in costs else None,
                    "seconds": costs[point, hook][1] if (point, hook) in costs else None,
                }
                for (point, hook), order in self._cells.items()
            ],
            "measured": measured,
        }
        try:
            data = to_json(content).encode()
            write_bytes(RunDir(run.dir).hooks_file, data, durable=False)
        except OSError as error:
            if not self._is_failing:
                _log.warning("'%s' cannot be written: %s", RunDir(run.dir).hooks_file, error)
            self._is_failing = True

    def _look(self, run: Run) -> None:
        """Describe the hooks as they are; those that were switched off stay as they were."""
        plan = run._plan
        for hook in plan.hooks:
            # By identity: two hooks may be equal.
            points = [
                one
                for one in plan.points.values()
                if any(other is hook for other in plan.calls(one.name).hooks)
            ]
            every = {one.name: interval_at(hook, one) for one in points}
            self._hooks[hook.name] = {
                "name": hook.name,
                "type": kind_of(hook),
                "priority": priority_of(hook),
                "policy": hook.on_error,
                "reads": list(hook.reads),
                "writes": list(hook.writes),
                "every": {point: str(one) for point, one in every.items() if one is not None},
                "ranks": hook.ranks,
                "state": _describe(hook, run),
            }
        for point in plan.points:
            for order, hook in enumerate(plan.calls(point).hooks):
                self._cells[point, hook.name] = order

    def _costs(self, run: Run) -> tuple[object, dict[tuple[str, str], Cost]]:
        """Return what was measured, and the cost of each call by point and hook."""
        from hookloop.hooks.measuring.record_hook_times import RecordHookTimes

        whole = next((one for one in run._plan.hooks if isinstance(one, RecordHookTimes)), None)
        done = run.progress.iter
        if whole is not None and done > self._start:
            count, seconds = done - self._start, perf_counter() - self._began
            costs = {(point, name): cost for (name, point), cost in whole.costs().items()}
            return _about("all iterations", count, seconds), costs
        count = min(done, self._last) - self._first
        if count <= 0 or not self._spent:
            return self._earlier
        seconds = self._seconds or perf_counter() - self._since
        text = f"iterations {self._first + 1} to {self._first + count}"
        spent = {key: (int(calls), total) for key, (calls, total) in self._spent.items()}
        return _about(text, count, seconds), spent

    def _measured(self, call: Call, hook: Hook, point: str) -> Call:
        key, first, last = (point, hook.name), self._first, self._last

        def measured(run: Run, *args: object) -> None:
            done = run.progress.iter
            if first <= done < last:
                since = perf_counter()
                self._since = self._since or since
                try:
                    call(run, *args)
                finally:
                    row = self._spent.setdefault(key, [0, 0.0])
                    row[0] += 1
                    row[1] += perf_counter() - since
                return
            if done >= last and self._is_wrapped:
                self._seconds = perf_counter() - self._since if self._since else 0.0
                self.stop(run)
                self.write(run)
            call(run, *args)

        return measured


def _about(text: str, iters: int, seconds: float) -> dict[str, object]:
    return {"text": text, "iters": iters, "iteration_seconds": seconds / iters}


def _describe(hook: Hook, run: Run) -> dict[str, object] | None:
    try:
        found: object = hook.describe(run)  # A hook may have a method of that name by chance.
        return dict(found) if isinstance(found, Mapping) and found else None
    except Exception as error:  # noqa: BLE001 - a hook's own text must not end a training
        return {"problem": f"{type(error).__name__}: {error}"}


def _read_earlier(run: Run) -> tuple[object, dict[tuple[str, str], Cost]]:
    """Return what an earlier start has measured, until this one has something better."""
    try:
        data = read_json(RunDir(run.dir).hooks_file)
    except (OSError, ValueError):
        return None, {}
    cells = data.get("cells") if isinstance(data, dict) else None
    costs: dict[tuple[str, str], Cost] = {}
    for one in cells if isinstance(cells, list) else []:
        if isinstance(one, dict) and isinstance(one.get("calls"), int):
            seconds = one.get("seconds")
            if isinstance(seconds, float):
                costs[str(one.get("point")), str(one.get("hook"))] = (one["calls"], seconds)
    return (data.get("measured"), costs) if isinstance(data, dict) and costs else (None, {})
