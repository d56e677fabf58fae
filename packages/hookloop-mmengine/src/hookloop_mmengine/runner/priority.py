"""``mmengine.runner.Priority``: MMEngine's enum, with the same numbers as ours."""

from __future__ import annotations

from enum import Enum


class Priority(Enum):
    """The order of hooks at a point; lower numbers come first."""

    HIGHEST = 0
    VERY_HIGH = 10
    HIGH = 30
    ABOVE_NORMAL = 40
    NORMAL = 50
    BELOW_NORMAL = 60
    LOW = 70
    VERY_LOW = 90
    LOWEST = 100


def get_priority(priority: int | str | Priority) -> int:
    """Return the number of a priority.

    >>> get_priority("very_high"), get_priority(Priority.LOW), get_priority(55)
    (10, 70, 55)
    """
    if isinstance(priority, int):
        if not 0 <= priority <= 100:
            raise ValueError("priority must be between 0 and 100")
        return int(priority)
    if isinstance(priority, Priority):
        return priority.value
    if isinstance(priority, str):
        return Priority[priority.upper()].value
    raise TypeError("priority must be an integer or Priority enum value")
