"""What differs on purpose from the version that is compared with.

Each entry names what differs, as `make golden` prints it, and why. It goes when no version before
that change is compared with any more.
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


EXPECTED: tuple[Expected, ...] = (
    Expected(
        "every run records what happens to it from outside",
        what="files/names",
        where="*/interventions.jsonl",
    ),
    Expected(
        "summary.json names the metrics that measure the machine (830fcae)",
        what="files/*/summary.json",
        where=".machine*",
    ),
    Expected(
        "a run has an id, and names the run that it continues (runs/identity.py)",
        what="files/*/summary.json",
        where=".parent*",
    ),
    Expected(
        "a run has an id, and names the run that it continues (runs/identity.py)",
        what="files/*.json",
        where=".run_id",
    ),
    Expected(
        "a checkpoint names the run that saved it (runs/identity.py)",
        what="end",
        where="*run_id*",
    ),
    Expected(
        "a script's run keeps what it was trained with (971f12f)",
        what="files/names",
        where="run/trained_with.yaml",
    ),
    Expected(
        "the first loss of a training is watched (971f12f)",
        part="counted",
        what="*calls",
        where="iteration 1 of those within epochs",
    ),
)
