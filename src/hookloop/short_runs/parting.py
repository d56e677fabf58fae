"""Where two sides part: the first line that differs, and what is equal before it.

Only what is computed counts. A setting that differs is remembered, and named as soon as a number
differs; a setting that changes no number is no parting. What only one side has, a hook that
observes or an attribute, is no parting either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from hookloop.short_runs.sides import Block
from hookloop.update.probe import SETTINGS, Line

OF_ONE_SIDE = ("generator", "hook", "setting", "group", "value")
"""Kinds that one side alone may have without having parted."""

SEQUENCE = "sequence"
"""The kind of a parting in which the two sides do different things."""


@dataclass(frozen=True)
class Unlike:
    """A line that differs.

    Attributes:
        iter: The iteration.
        line: Its number in the iteration, from 1, as the first side counts.
        at: The moment.
        kind: What it is; `SEQUENCE` if the sides do different things.
        name: Its name.
        values: The digests, or the values of a setting, of both sides.
    """

    iter: int
    line: int
    at: str
    kind: str
    name: str
    values: tuple[str, str]

    def __str__(self) -> str:
        what = f"{self.kind} {self.name}" if self.name and self.name != self.kind else self.kind
        return f"iteration {self.iter}, {self.at}: {what}"


@dataclass
class Found:
    """What a comparison has found.

    Attributes:
        parted: The first number that differs; None if none does.
        settings: The settings that differed until then.
        only: What one side alone has, each with ``first`` or ``second``.
        equal: The kinds of lines that were equal in that iteration before it.
        first: The first iteration that was compared.
        last: The last one.
        lines: How many lines were compared.
        headers: What each side says of itself.
        ends: How each side ended, if it came to that.
    """

    parted: Unlike | None = None
    settings: list[Unlike] = field(default_factory=list)
    only: dict[str, str] = field(default_factory=dict)
    equal: list[str] = field(default_factory=list)
    first: int = 0
    last: int = 0
    lines: int = 0
    headers: list[dict[str, object]] = field(default_factory=lambda: [{}, {}])
    ends: list[Block] = field(default_factory=lambda: [{}, {}])


def compare_sides(one: Iterator[Block], other: Iterator[Block]) -> Found:
    """Read the blocks of two sides together, up to the first number that differs."""
    found = Found()
    known: set[tuple[str, str]] = set()
    while found.parted is None:
        blocks = [_next_iteration(side, found, place) for place, side in enumerate((one, other))]
        if blocks[0] is None or blocks[1] is None:
            break
        numbers = [cast("int", block["iter"]) for block in blocks if block is not None]
        if numbers[0] != numbers[1]:
            at = (f"iteration {numbers[0]}", f"iteration {numbers[1]}")
            found.parted = Unlike(min(numbers), 0, "before_train_iter", SEQUENCE, "", at)
            break
        lines = [_read(cast("Block", block)) for block in blocks]
        _compare_iteration(numbers[0], lines, found, known)
    return found


def _next_iteration(side: Iterator[Block], found: Found, place: int) -> Block | None:
    for block in side:
        if "iter" in block and "lines" in block:
            return block
        if "header" in block:
            found.headers[place] |= cast("dict[str, object]", block["header"])
        if "end" in block:
            found.ends[place] = block
    return None


def _read(block: Block) -> list[Line]:
    return [Line(*one) for one in cast("Sequence[Sequence[str]]", block["lines"])]


def _compare_iteration(
    number: int, sides: Sequence[Sequence[Line]], found: Found, known: set[tuple[str, str]]
) -> None:
    found.first = found.first or number
    found.last = number
    ours, theirs = _shared(sides, found)
    equal: dict[str, None] = {}
    for place, (one, other) in enumerate(zip(ours, theirs, strict=False), start=1):
        found.lines += 1
        if one[:3] != other[:3]:
            what = (f"{one.at}: {one.kind} {one.name}", f"{other.at}: {other.kind} {other.name}")
            found.parted = Unlike(number, place, one.at, SEQUENCE, one.name, what)
            break
        if one.digest == other.digest:
            equal[one.kind] = None
            continue
        unlike = Unlike(number, place, one.at, one.kind, one.name, (one.digest, other.digest))
        if one.kind not in SETTINGS and not _has_other_settings(one, found):
            found.parted = unlike
            break
        if (one.kind, one.name) not in known:
            known.add((one.kind, one.name))
            found.settings.append(unlike)
    else:
        if len(ours) != len(theirs):
            longer, which = (ours, 0) if len(ours) > len(theirs) else (theirs, 1)
            line = longer[min(len(ours), len(theirs))]
            values = [f"{line.at}: {line.kind} {line.name}", "nothing"]
            pair = (values[which], values[1 - which])
            found.parted = Unlike(number, len(ours), line.at, SEQUENCE, line.name, pair)
    found.equal = list(equal)


def _has_other_settings(line: Line, found: Found) -> bool:
    """Return whether the state of a hook differs because the hook was built with other values."""
    if line.kind != "hook":
        return False
    name = line.name.partition(".")[0]
    both = [cast("Mapping[str, object]", one.get("hooks") or {}) for one in found.headers]
    return both[0].get(name) != both[1].get(name)


def _shared(sides: Sequence[Sequence[Line]], found: Found) -> tuple[list[Line], list[Line]]:
    """Return the lines without those that one side alone may have; note these."""
    counts = [Counter((one.at, one.kind, one.name) for one in lines) for lines in sides]
    if counts[0] == counts[1]:
        return list(sides[0]), list(sides[1])
    kept: list[list[Line]] = []
    for place, lines in enumerate(sides):
        other = counts[1 - place]
        left: Counter[tuple[str, str, str]] = Counter()
        own: list[Line] = []
        for line in lines:
            key = (line.at, line.kind, line.name)
            left[key] += 1
            if line.kind in OF_ONE_SIDE and left[key] > other[key]:
                found.only.setdefault(f"{line.kind} {line.name}", ("first", "second")[place])
            else:
                own.append(line)
        kept.append(own)
    return kept[0], kept[1]


# --- what sides say of themselves -----------------------------------------------------------------

CANDIDATES = ("code", "library", "machine", "config")
"""What may be exchanged between two sides, in the order in which it is tried."""


def differing(headers: Sequence[Mapping[str, object]]) -> dict[str, dict[str, list[object]]]:
    """Return what two headers differ in, by candidate: each key with both values."""
    found: dict[str, dict[str, list[object]]] = {}
    for part in CANDIDATES:
        both = [cast("Mapping[str, object]", one.get(part) or {}) for one in headers]
        keys = dict.fromkeys([*both[0], *both[1]])
        unlike = {
            key: [both[0].get(key), both[1].get(key)]
            for key in keys
            if both[0].get(key) != both[1].get(key)
            # A module that one side alone imports follows from what else differs.
            and (part != "code" or (key in both[0] and key in both[1]))
        }
        if unlike:
            found[part] = unlike
    return found


# --- who wrote it ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Write:
    """A call of a hook that changed what has parted."""

    iter: int
    point: str
    hook: str
    after: str | None


def writes_in(blocks: Iterable[Block]) -> list[Write]:
    """Return the calls of hooks that changed the thing that was asked for, in order."""
    found = []
    for block in blocks:
        if "firing" in block:
            number, point, hook, before, after = cast(
                "tuple[int, str, str, str | None, str | None]", block["firing"]
            )
            if before != after:
                found.append(Write(number, point, hook, after))
    return found


def first_unlike(one: Sequence[Write], other: Sequence[Write]) -> tuple[Write, int] | None:
    """Return the first write that the two sides do not share, and on which side it is."""
    for ours, theirs in zip(one, other, strict=False):
        if ours == theirs:
            continue
        if (ours.point, ours.hook) == (theirs.point, theirs.hook):
            return theirs, 1
        # One that the other side makes later is not the one too many.
        is_later = any((w.point, w.hook) == (theirs.point, theirs.hook) for w in one)
        return (ours, 0) if is_later else (theirs, 1)
    if len(one) > len(other):
        return one[len(other)], 0
    return (other[len(one)], 1) if len(other) > len(one) else None
