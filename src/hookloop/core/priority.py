"""The order of hooks at a mount point."""

from __future__ import annotations

from enum import IntEnum

from hookloop.errors import HookError, nearest


class Priority(IntEnum):
    """Named places on the scale 0..100; the lower number acts first.

    >>> Priority.parse("above_normal"), Priority.parse(55)
    (40, 55)
    """

    HIGHEST = 0
    VERY_HIGH = 10
    HIGH = 30
    ABOVE_NORMAL = 40
    NORMAL = 50
    BELOW_NORMAL = 60
    LOW = 70
    VERY_LOW = 90
    LOWEST = 100

    @classmethod
    def parse(cls, value: Priority | int | str) -> int:
        """Read a name in any case, or a whole number from 0 to 100."""
        if isinstance(value, str):
            member = cls.__members__.get(value.strip().upper())
            if member is None:
                raise HookError(
                    f"'{value}' is no priority.{nearest(value, cls.__members__)} "
                    f"Write 0..100 or one of {', '.join(cls.__members__)}."
                )
            return int(member)
        if isinstance(value, bool) or not isinstance(value, int):
            raise HookError(f"{value!r} is no priority: write a whole number 0..100 or a name.")
        if not 0 <= value <= 100:
            raise HookError(f"{value} is no priority: it must lie between 0 and 100.")
        return int(value)
