"""What hooks declare to read and write, held against the order in which they act."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from hookloop.core.priority import Priority
from hookloop.errors import HookError, MetricError, nearest

if TYPE_CHECKING:
    from hookloop.core.hook import Hook

Acting = Sequence[tuple["Hook", list[str]]]
"""The hooks in their order, each with the points at which it acts."""


def matches(one: str, other: str) -> bool:
    """Tell whether two names, either of which may be a pattern, can mean the same metric.

    >>> matches("val/accuracy", "val/*"), matches("train/loss", "val/loss")
    (True, False)
    """
    return one == other or fnmatchcase(one, other) or fnmatchcase(other, one)


def check_contract(acting: Acting, produced: Collection[str]) -> None:
    """Refuse a reader of something that nothing writes, or that is written only after it.

    Args:
        acting: The hooks in order, with their points.
        produced: Names and patterns that the engine itself writes.
    """
    for place, (reader, points) in enumerate(acting):
        for name in reader.reads:
            if any(matches(name, own) for own in produced):
                continue
            writers = [
                (index, hook, set(points) & set(theirs))
                for index, (hook, theirs) in enumerate(acting)
                if hook is not reader and any(matches(name, written) for written in hook.writes)
            ]
            if not writers:
                known = [*produced, *(w for hook, _ in acting for w in hook.writes)]
                raise MetricError(_unknown(reader.name, name, known))
            if all(index > place and shared for index, _, shared in writers):
                _, writer, shared = writers[0]
                raise HookError(
                    f"The hook '{reader.name}' reads '{name}' at {min(shared)} before "
                    f"'{writer.name}', its only writer, has written it: list '{writer.name}' "
                    f"before '{reader.name}', or give '{reader.name}' a higher priority number "
                    f"than {Priority.parse(writer.priority)}."
                )


def check_written(hooks: Sequence[Hook], phase: str, recorded: Collection[str]) -> None:
    """After an evaluation: refuse a hook that watches a metric which did not turn up in it."""
    known = [*recorded, *(name for hook in hooks for name in hook.writes)]
    for hook in hooks:
        for name in hook.reads:
            if name.startswith(f"{phase}/") and not any(matches(name, other) for other in known):
                raise MetricError(_unknown(hook.name, name, known))


def _unknown(hook: str, name: str, known: Collection[str]) -> str:
    listed = ", ".join(sorted(known)) or "none"
    return (
        f"The hook '{hook}' watches '{name}', which nothing produces.{nearest(name, known)} "
        f"Known metrics: {listed}."
    )
