"""Which checkpoints stay and which go: a judgement of the index alone, which touches no file."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from math import isnan, nan

from hookloop.checkpoint.store.index import Kind, Saved


@dataclass(frozen=True)
class Keep:
    """What an owner keeps of its checkpoints.

    Attributes:
        owner: Who asked for them.
        kind: Those of this kind are counted.
        most: How many to keep, the newest or the best; None for all.
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
    return [one.name for one in first_to_stay(owned, keep.owner)[keep.most :] if not one.forever]


def first_to_stay(owned: Sequence[Saved], owner: str) -> list[Saved]:
    """Return the checkpoints of an owner, the one in front that is kept longest.

    That is the best if the newest has a rule, else the newest. Of equal ones the older is better.
    Those of a branch that a run has left, by going back or by a resume from an older checkpoint,
    come last: they are not of the training that continues.

    Args:
        owned: In the order of saving.
        owner: The hook, with the metric after a slash.
    """
    newest_first = list(reversed(owned))
    if not newest_first or newest_first[0].rule is None:
        return newest_first
    branch: list[Saved] = []
    left: list[Saved] = []
    reached = newest_first[0].iter
    for one in newest_first:
        (branch if one.iter <= reached else left).append(one)
        reached = min(reached, one.iter)
    metric, is_less = owner.partition("/")[2], newest_first[0].rule == "less"

    def place(one: Saved) -> tuple[bool, float, int]:
        value = one.metrics.get(f"val/{metric}", nan)
        return isnan(value), value if is_less else -value, one.iter

    return [*sorted(branch, key=place), *left]


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
