"""What a sweep varies: ``optimizer.lr=log(1e-4,1e-2)``, read without Optuna."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product

import yaml

from hookloop.config.reading.yaml_file import parse_value
from hookloop.errors import HookloopError, nearest

Scalar = str | int | float | bool | None

_CALL = re.compile(r"\s*([A-Za-z]+)\s*\((.*)\)\s*", re.DOTALL)
RANGES = ("log", "uniform", "int")


@dataclass(frozen=True)
class Range:
    """Numbers between two bounds, both included.

    Attributes:
        low: The smallest.
        high: The largest.
        is_log: Whether each factor of ten is equally likely.
        is_whole: Whether only whole numbers are drawn.
    """

    low: float
    high: float
    is_log: bool = False
    is_whole: bool = False


@dataclass(frozen=True)
class Choices:
    """Values to choose from, as Optuna keeps them; a list or mapping is kept as its YAML text."""

    values: tuple[Scalar, ...]


@dataclass(frozen=True)
class Folds:
    """A key that takes the numbers from 0 to ``count`` - 1 within each trial."""

    key: str
    count: int


Space = dict[str, Range | Choices]


def split(words: Sequence[str]) -> tuple[Space, list[str]]:
    """Divide ``KEY=VALUE`` into what is varied and what is only overridden.

    >>> split(["optimizer.lr=log(1e-4,1e-2)", "model.width=[32,64]", "max_epochs=3"])[1]
    ['max_epochs=3']
    """
    space: Space = {}
    fixed = []
    for word in words:
        key, _, text = word.partition("=")
        varied = _parse(key, text)
        if varied is None:
            fixed.append(word)
        else:
            space[key.strip()] = varied
    return space, fixed


def parse_folds(text: str) -> Folds:
    """Read ``KEY=COUNT``."""
    key, _, count = text.partition("=")
    if not key.strip() or not count.strip().isdigit() or int(count) < 2:
        raise HookloopError(f"--folds {text}: write KEY=COUNT with at least 2, as vars.fold=5.")
    return Folds(key.strip(), int(count))


def _parse(key: str, text: str) -> Range | Choices | None:
    call = _CALL.fullmatch(text)
    if call is not None:
        return _range(key, call[1], [part.strip() for part in call[2].split(",")])
    try:
        value = parse_value(text)
    except yaml.YAMLError:
        return None  # Rejected with the other overrides, in the words that are used there.
    if not isinstance(value, list):
        return None
    if not value:
        raise HookloopError(f"{key}=[]: there is nothing to choose from.")
    return Choices(tuple(_scalar(one) for one in value))


def _range(key: str, kind: str, parts: list[str]) -> Range:
    form = "log(LOW,HIGH), uniform(LOW,HIGH), int(LOW,HIGH), int(LOW,HIGH,log) or [A,B,C]"
    where = f"{key}={kind}({','.join(parts)})"
    if kind not in RANGES:
        raise HookloopError(f"{where} is not a range:{nearest(kind, RANGES)} Write {form}.")
    is_log = kind == "log" or (kind == "int" and parts[2:] == ["log"])
    try:
        low, high = (float(part) for part in parts[:2])
    except ValueError as error:
        raise HookloopError(f"{where} is not a range: write {form}.") from error
    if len(parts) != 2 + (kind == "int" and is_log) or not (
        math.isfinite(low) and math.isfinite(high)
    ):
        raise HookloopError(f"{where} is not a range: write {form}.")
    if not low < high or (is_log and low <= 0):
        bounds = "above 0, the first below the second" if is_log else "the first below the second"
        raise HookloopError(f"{where}: the bounds must be {bounds}.")
    if kind == "int" and (low != int(low) or high != int(high)):
        raise HookloopError(f"{where}: the bounds of int() are whole numbers.")
    return Range(low, high, is_log, kind == "int")


def _scalar(value: object) -> Scalar:
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return yaml.safe_dump(value, default_flow_style=True, width=1_000_000).strip()


def overrides(chosen: Mapping[str, Scalar]) -> list[str]:
    """Return the overrides that give a trial its values.

    >>> overrides({"optimizer.lr": 0.003, "model.bias": True, "schedule": None})
    ['optimizer.lr=0.003', 'model.bias=true', 'schedule=null']
    """
    words = {True: "true", False: "false", None: "null"}
    return [
        f"{key}={words[value] if value is None or isinstance(value, bool) else value}"
        for key, value in chosen.items()
    ]


def grid(space: Space) -> dict[str, list[Scalar]]:
    """Return all values of each key, for a sweep that tries every combination."""
    open_ended = [key for key, one in space.items() if isinstance(one, Range) and not one.is_whole]
    if open_ended:
        raise HookloopError(
            f"--sampler grid cannot try every value of {', '.join(open_ended)}: give a list."
        )
    return {
        key: list(one.values)
        if isinstance(one, Choices)
        else list(range(int(one.low), int(one.high) + 1))
        for key, one in space.items()
    }


def combinations(space: Space) -> int:
    """Return how many combinations a grid has."""
    return sum(1 for _ in product(*grid(space).values()))


def first_values(space: Space) -> dict[str, Scalar]:
    """Return one value of each key, to try whether a config takes it."""
    return {
        key: one.values[0]
        if isinstance(one, Choices)
        else int(one.low)
        if one.is_whole
        else one.low
        for key, one in space.items()
    }


def describe(space: Space) -> dict[str, object]:
    """Return a space as JSON can hold it, to be compared with that of a sweep that continues."""
    return {
        key: list(one.values) if isinstance(one, Choices) else asdict(one)
        for key, one in space.items()
    }
