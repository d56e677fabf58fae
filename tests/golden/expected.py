"""What differs on purpose from the version that is compared with. Emptied when that one is newer.

Each entry names what differs, as `make golden` prints it, and why.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class Expected:
    """A difference that is meant.

    Attributes:
        reason: Why.
        configuration: A number, or a pattern.
        part: ``whole``, ``resumed *``.
        what: ``end``, ``trace``, ``files/run/summary.json``.
        where: The place in it.
    """

    reason: str
    configuration: str = "*"
    part: str = "*"
    what: str = "*"
    where: str = "*"

    def matches(self, configuration: str, part: str, what: str, where: str) -> bool:
        pairs = (
            (configuration, self.configuration),
            (part, self.part),
            (what, self.what),
            (where, self.where),
        )
        return all(fnmatchcase(name, pattern) for name, pattern in pairs)


EXPECTED: tuple[Expected, ...] = ()
