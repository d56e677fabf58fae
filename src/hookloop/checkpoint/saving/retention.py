"""Which checkpoints stay and which go: a judgement of the index alone, which touches no file."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from hookloop.checkpoint.index import Kind, Saved


@dataclass(frozen=True)
class Keep:
    """What an owner keeps of its checkpoints.

    Attributes:
        owner: Who asked for them.
        kind: Those of this kind are counted.
        most: How many to keep, the newest; None for all.
    """

    owner: str
    kind: Kind
    most: int | None


def surplus(entries: Collection[Saved], keep: Keep) -> list[str]:
    """Return the names of the checkpoints that an owner does not keep.

    Args:
        entries: All of a store, in the order of saving.
        keep: What the owner keeps.
    """
    if keep.most is None:
        return []
    owned = [one for one in entries if keep.owner in one.owners and one.kind == keep.kind]
    return [one.name for one in owned[: -keep.most] if not one.forever]


def expendable(entries: Collection[Saved], keep: Keep) -> list[str]:
    """Return the names of those that nobody else keeps either, so that their files can go."""
    names = set(surplus(entries, keep))
    return [one.name for one in entries if one.name in names and one.owners == (keep.owner,)]


def without_surplus(entries: Collection[Saved], keep: Keep) -> list[Saved]:
    """Return what an index lists when the owner has let go of what it does not keep."""
    names = set(surplus(entries, keep))
    left = []
    for entry in entries:
        others = tuple(owner for owner in entry.owners if owner != keep.owner)
        if entry.name not in names:
            left.append(entry)
        elif others:
            left.append(replace(entry, owners=others))
    return left


def spare(entries: Sequence[Saved], wanted: Saved, newest: Saved | None) -> list[Saved]:
    """Return what may go to make room for one more on a full disk, the oldest first.

    What only the user may delete stays: the best, those kept forever, and those that another hook
    keeps as well.

    Args:
        entries: All of a store, in the order of saving.
        wanted: What room is needed for.
        newest: The newest one from which a run can be resumed, which always stays.
    """
    if newest is None or wanted.kind != "periodic":
        return []
    same = [one for one in entries if (one.kind, one.owners) == (wanted.kind, wanted.owners)]
    return [one for one in same if one is not newest and not one.forever]
