"""Compare two recordings, and say which configuration differs, in what, and where first."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from tests.golden.expected import EXPECTED, Expected

Found = tuple[str, str]
"""Where something differs, and how."""


@dataclass(frozen=True)
class Difference:
    """Something in which a configuration differs.

    Attributes:
        configuration: Its number.
        part: Which of its trainings.
        what: What was recorded: ``end``, ``trace``, ``files/metrics.jsonl``.
        where: The first place.
        how: What it was, and what it is.
        count: In how many places.
    """

    configuration: str
    part: str
    what: str
    where: str
    how: str
    count: int

    def __str__(self) -> str:
        more = f" (and {self.count - 1} more)" if self.count > 1 else ""
        return f"{self.configuration}, {self.part}, {self.what}: {self.where}: {self.how}{more}"


@dataclass
class Result:
    """What a comparison has found.

    Attributes:
        differences: What may not differ.
        expected: What differs on purpose, with the reason.
        fewer: Where fewer calls are made.
        compared: How many trainings were compared.
    """

    differences: list[Difference]
    expected: list[tuple[Difference, Expected]]
    fewer: list[str]
    compared: int = 0


def compare(base: Path, new: Path, expected: tuple[Expected, ...] = EXPECTED) -> Result:
    """Compare the recordings in two directories."""
    result = Result([], [], [])
    homes = sorted({home.name for side in (base, new) for home in side.iterdir()}, key=_order)
    for home in homes:
        names = {path.name for side in (base, new) for path in (side / home).glob("*.json")}
        for name in sorted(names - {"seconds.json"}):
            part = name.removesuffix(".json")
            old, now = (_read(side / home / name) for side in (base, new))
            if part.startswith("killed"):  # By one side only, for both.
                _note_problem(home, part, "BASE", old, result)
                continue
            result.compared += 1
            _compare_part(home, part, old, now, expected, result)
    return result


def _order(name: str) -> tuple[int, str]:
    number, _, variant = name.partition("_")
    return int(number), variant


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {"problem": "there is no recording"}
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def _compare_part(
    home: str,
    part: str,
    old: dict[str, Any],
    now: dict[str, Any],
    expected: tuple[Expected, ...],
    result: Result,
) -> None:
    _note_problem(home, part, "BASE", old, result)
    _note_problem(home, part, "here", now, result)
    for what, one, other in _things(old, now):
        if what.endswith("calls"):
            found_here = list(_more_calls(one, other))
            if fewer := _fewer_calls(one, other):
                result.fewer.append(f"{home}, {part}, {what}: {fewer}")
        else:
            found_here = list(_walk(one, other))
        unexpected: list[Found] = []
        for where, how in found_here:
            rule = next((e for e in expected if e.matches(home, part, what, where)), None)
            if rule is None:
                unexpected.append((where, how))
            else:
                result.expected.append((Difference(home, part, what, where, how, 1), rule))
        if unexpected:
            where, how = unexpected[0]
            difference = Difference(home, part, what, where, how, len(unexpected))
            result.differences.append(difference)


def _note_problem(
    home: str, part: str, side: str, recorded: dict[str, Any], result: Result
) -> None:
    if "problem" in recorded:
        found = Difference(home, part, "problem", side, recorded["problem"], 1)
        result.differences.append(found)


def _things(old: dict[str, Any], now: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield what was recorded: of each rank, and each file."""
    for key in sorted({*old, *now} - {"problem"}):
        for name in dict.fromkeys([*old.get(key, {}), *now.get(key, {})]):
            if name == "saved_at":
                continue
            label = f"{key}/{name}" if key == "files" else name
            label = label if key in ("files", "rank 0") else f"{key}: {label}"
            one, other = old.get(key, {}).get(name), now.get(key, {}).get(name)
            if name == "announced":
                one, other = sorted(one or []), sorted(other or [])
            if one is not None and other is not None:
                yield label, one, other
            elif key != "files":  # Of files the names are compared.
                yield (
                    label,
                    {"": "there"} if one is not None else {},
                    {"": "there"} if other else {},
                )


def _walk(one: Any, other: Any, path: str = "") -> Iterator[Found]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in dict.fromkeys([*one, *other]):
            if key not in one:
                yield f"{path}{key}", f"nothing -> {other[key]}"
            elif key not in other:
                yield f"{path}{key}", f"{one[key]} -> nothing"
            else:
                yield from _walk(one[key], other[key], f"{path}{key}")
    elif isinstance(one, list) and isinstance(other, list):
        yield from _walk_list(one, other, path)
    elif one != other:
        yield path, f"{one} -> {other}"


def _walk_list(one: list[Any], other: list[Any], path: str) -> Iterator[Found]:
    for index, (left, right) in enumerate(zip_longest(one, other)):
        if left != right:
            yield f"{path}[{index}]", _how_entries_differ(left, right)
            if len(one) != len(other):  # Whatever follows is shifted.
                return


def _how_entries_differ(left: Any, right: Any) -> str:
    """Say how two entries differ; of a trace, which generator."""
    if isinstance(left, list) and isinstance(right, list) and left[:-1] == right[:-1]:
        before, after = left[-1], right[-1]
        if isinstance(before, dict) and isinstance(after, dict):
            names = [n for n in {**before, **after} if before.get(n) != after.get(n)]
            return f"{_place(left)}: the generators {', '.join(names)} stand elsewhere"
    return f"{_place(left)} -> {_place(right)}"


def _place(entry: Any) -> str:
    if isinstance(entry, list):
        point, phase, stream, iteration, epoch, *_ = entry
        return f"{point} in {phase} of {stream!r}, iteration {iteration}, epoch {epoch}"
    return "nothing" if entry is None else str(entry)


def _more_calls(one: list[int], other: list[int]) -> Iterator[Found]:
    if len(one) != len(other):
        yield "iterations", f"{len(one)} -> {len(other)}"
    for index, (before, after) in enumerate(zip(one, other, strict=False)):
        if after > before:
            yield f"iteration {index + 1} of those within epochs", f"{before} -> {after}"


def _fewer_calls(one: list[int], other: list[int]) -> str:
    before, after = sum(one), sum(other)
    if after >= before or len(one) != len(other):
        return ""
    return f"{before / len(one):.1f} -> {after / len(one):.1f} per iteration"
