"""The timetable of a run: who acts where, for people to look at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hookloop.engine.hook import interval_at, priority_of
from hookloop.every import Every

if TYPE_CHECKING:
    from hookloop.engine.plan import Plan


@dataclass(frozen=True)
class Row:
    """One line of the timetable: a hook that acts at a point, and what it declares."""

    point: str
    hook: str
    priority: int
    every: Every | None
    reads: tuple[str, ...]
    writes: tuple[str, ...]


def timetable_of(plan: Plan) -> list[Row]:
    """List who acts where, in the order of the table and of the calls."""
    return [
        Row(
            point.name,
            hook.name,
            priority_of(hook),
            interval_at(hook, point),
            tuple(hook.reads),
            tuple(hook.writes),
        )
        for point in plan.points.values()
        for hook in plan.calls(point.name).hooks
    ]
