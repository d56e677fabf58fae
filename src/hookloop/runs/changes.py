"""The intended changes of a run: settings that somebody changed while it was trained."""

from __future__ import annotations

from typing import TypedDict, cast

from hookloop.runs.layout import RunDir


class Change(TypedDict):
    """A setting that was changed.

    Attributes:
        iter: The iterations completed when it was changed.
        key: The setting, such as ``optimizer.lr``.
        old: Its value before.
        new: Its value since.
        how: How it came: ``asked`` of the live run, ``resumed`` with it, or ``rewound``, when the
            run went back from the iteration ``old`` to ``new``; its key is ``iter`` then.
    """

    iter: int
    key: str
    old: object
    new: object
    how: str


def read_changes(run: RunDir) -> list[Change]:
    """Return the changes in the summary of a run, in their order."""
    found = run.read_summary().get("changes")
    if not isinstance(found, list):
        return []
    return [cast("Change", one) for one in found if isinstance(one, dict) and "key" in one]
