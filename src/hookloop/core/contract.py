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
        before = [name for hook, _ in acting[:place] for name in hook.writes]
        for name in reader.reads:
            _check_exists(reader, name, acting, produced)
            for writer, theirs in acting[place + 1 :]:
                shared = [point for point in points if point in theirs]
                late = _only_written_by(writer, name, [*produced, *before])
                if late and shared:
                    raise HookError(
                        f"The hook '{reader.name}' reads '{late}' at {shared[0]} before "
                        f"'{writer.name}', its only writer, has written it: list '{writer.name}' "
                        f"before '{reader.name}', or give '{reader.name}' a priority number above "
                        f"{Priority.parse(writer.priority)}.",
                        reader.name,
                    )


def _check_exists(reader: Hook, name: str, acting: Acting, produced: Collection[str]) -> None:
    known = [*produced, *(w for hook, _ in acting if hook is not reader for w in hook.writes)]
    if not any(matches(name, other) for other in known):
        raise MetricError(_unknown(reader.name, name, known), reader.name)


def _only_written_by(writer: Hook, name: str, others: Collection[str]) -> str | None:
    """Return what a hook writes under a name that is read, if nobody else writes it before."""
    for written in writer.writes:
        if matches(written, name) and not any(matches(written, other) for other in others):
            return written
    return None


def check_written(hooks: Sequence[Hook], phase: str, recorded: Collection[str]) -> None:
    """After an evaluation: refuse a hook that watches a metric which did not turn up in it."""
    known = [*recorded, *(name for hook in hooks for name in hook.writes)]
    for hook in hooks:
        for name in hook.reads:
            if name.startswith(f"{phase}/") and not any(matches(name, other) for other in known):
                raise MetricError(_unknown(hook.name, name, known))


def _unknown(hook: str, name: str, known: Collection[str]) -> str:
    listed = ", ".join(sorted(known)) or "none"
    phase = name.partition("/")[0]
    hint = nearest(name, known)
    if phase in ("val", "test") and not any(one.startswith(f"{phase}/") for one in known):
        hint = f" There is no {phase}_data=."
    return (
        f"The hook '{hook}' watches '{name}', which nothing produces.{hint} "
        f"Known metrics: {listed}. A hook that puts another declares it: writes = ('{name}',)."
    )
