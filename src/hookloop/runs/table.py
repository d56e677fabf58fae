"""A table of runs: columns by config key or metric, filtered and sorted."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from fnmatch import fnmatchcase
from pathlib import Path

from hookloop.errors import HookloopError, nearest
from hookloop.runs.config_values import read_config
from hookloop.runs.layout import RunDir
from hookloop.runs.policy import NOT_SHOWN
from hookloop.runs.reader import RunSummary, list_runs
from hookloop.runs.tags import Labels, read_labels

MOST_KEYS = 6
"""How many config keys that differ are shown, unless columns are chosen."""

BEST = "best."
"""Before the name of a metric, for its best value."""

_FILTER = re.compile(r"\s*([^=<>!\s]+)\s*(<=|>=|!=|=|<|>)\s*(.*?)\s*")
_MISSING = ("", "none", "null", "None")


@dataclass(frozen=True)
class RunRow:
    """A run in the table.

    Attributes:
        run: Its summary.
        config: The values of its config by key.
        labels: Its tags and its note.
    """

    run: RunSummary
    config: Mapping[str, object]
    labels: Labels

    def value(self, column: str) -> object:
        """Return the value in a column; None if this run has none.

        A column is one of `COLUMNS`, a config key, a metric, or a metric with ``best.`` before it.
        """
        if column in COLUMNS:
            return COLUMNS[column](self)
        if column in self.config:
            return self.config[column]
        if column in self.run.metrics:
            return self.run.metrics[column]
        best = self.run.bests.get(column.removeprefix(BEST)) if column.startswith(BEST) else None
        return None if best is None else best.value

    def names(self) -> list[str]:
        """Return the columns that this run has a value for."""
        bests = [f"{BEST}{name}" for name in self.run.bests]
        return [*COLUMNS, *self.config, *self.run.metrics, *bests]

    def record(self) -> dict[str, object]:
        """Return all of it, as ``--json`` prints it."""
        run = self.run
        return {
            **{name: self.value(name) for name in COLUMNS},
            "path": str(run.path),
            "disabled": list(run.disabled),
            "metrics": dict(run.metrics),
            "bests": {
                name: {"value": best.value, "epoch": best.epoch} for name, best in run.bests.items()
            },
            "config": dict(self.config),
        }


def _outcome(row: RunRow) -> str:
    run = row.run
    without = f", without {', '.join(run.disabled)}" if run.disabled else ""
    return f"{run.status} ({run.reason}){without}" if run.reason else f"{run.status}{without}"


def _last(row: RunRow) -> float | None:
    best = row.run.best
    return None if best is None else row.run.metrics.get(best.metric)


def _best(row: RunRow) -> str | None:
    best = row.run.best
    return None if best is None else f"{best.metric} {best.value:.4g} (epoch {best.epoch})"


def _parent(row: RunRow) -> str | None:
    """Return the parent of a fork, and the iteration: ``one@1200``."""
    parent = row.run.parent
    if parent is None:
        return None
    folder = parent.run or parent.path.rpartition("/")[0]
    name = Path(row.run.path, folder).resolve().name if "://" not in folder else folder
    return f"{name}@{parent.iter}" if parent.iter is not None else name


COLUMNS: dict[str, Callable[[RunRow], object]] = {
    "run": lambda row: row.run.name,
    "outcome": _outcome,
    "status": lambda row: row.run.status,
    "reason": lambda row: row.run.reason,
    "epochs": lambda row: row.run.epochs,
    "iters": lambda row: row.run.iters,
    "ranks": lambda row: row.run.ranks,
    "parent": _parent,
    "best": _best,
    "last": _last,
    "started": lambda row: row.run.started.isoformat() if row.run.started else None,
    "seconds": lambda row: row.run.seconds,
    "duration": lambda row: (
        str(timedelta(seconds=round(row.run.seconds))) if row.run.seconds is not None else None
    ),
    "tags": lambda row: list(row.labels.tags),
    "note": lambda row: row.labels.note,
}
"""The columns that every run has."""


def read_rows(directory: str | Path) -> list[RunRow]:
    """Return the runs in a directory and below it, with their config and tags, oldest first."""
    return [row_of(run) for run in list_runs(directory)]


def row_of(run: RunSummary, config: Mapping[str, object] | None = None) -> RunRow:
    """Return a run with its config, unless that is given, and its labels."""
    home = RunDir(run.path)
    if config is None:
        try:
            config = read_config(home)
        except (OSError, ValueError):  # A damaged config does not hide the run.
            config = {}
    return RunRow(run, config, read_labels(home).with_config(config))


# --- columns --------------------------------------------------------------------------------------


def differing_keys(rows: Sequence[RunRow]) -> list[str]:
    """Return the config keys whose values differ between runs, those of most runs first."""
    firsts: dict[str, object] = {}
    differing: set[str] = set()
    counts: dict[str, int] = {}
    with_config = [row.config for row in rows if row.config]
    for config in with_config:
        for key, value in config.items():
            first = firsts.setdefault(key, value)
            counts[key] = counts.get(key, 0) + 1
            # Equal values are often the same object: the parser keeps what it has read.
            if first is not value and key not in differing and repr(first) != repr(value):
                differing.add(key)
    found = [
        key
        for key, count in counts.items()
        if (key in differing or count < len(with_config)) and key.partition(".")[0] not in NOT_SHOWN
    ]
    return sorted(found, key=lambda key: -counts[key])


def check_columns(rows: Sequence[RunRow], columns: Iterable[str]) -> None:
    """Reject a column that no run has."""
    known = dict.fromkeys(name for row in rows for name in row.names())
    for column in columns:
        if rows and column not in known:
            raise HookloopError(
                f"No run has '{column}': it is neither a config key nor a metric."
                f"{nearest(column, known)}"
            )


# --- filters and order ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Filter:
    """A condition on a column.

    Attributes:
        column: The column; ``tag`` for any of the tags.
        sign: How to compare.
        text: What to compare with; for texts a pattern such as ``2026-01-*``.
    """

    column: str
    sign: str
    text: str

    @classmethod
    def parse(cls, text: str) -> Filter:
        """Read a condition such as ``optimizer.lr<0.01``.

        >>> Filter.parse("optimizer.lr < 0.01")
        Filter(column='optimizer.lr', sign='<', text='0.01')
        """
        found = _FILTER.fullmatch(text)
        if found is None:
            raise HookloopError(
                f"'{text}' is not a filter: write COLUMN=VALUE, with =, !=, <, <=, > or >=, as in "
                "status=completed or optimizer.lr<0.01."
            )
        column, sign, value = found.groups()
        return cls("tags" if column == "tag" else column, sign, value)

    def accepts(self, row: RunRow) -> bool:
        """Return whether a run fulfils it."""
        value = row.value(self.column)
        if self.sign in ("=", "!="):
            return self._is_equal(value) == (self.sign == "=")
        given, wanted = _number(value), _number(self.text)
        if given is not None and wanted is not None:
            return _compare(given, self.sign, wanted)
        return isinstance(value, str) and wanted is None and _compare(value, self.sign, self.text)

    def _is_equal(self, value: object) -> bool:
        if isinstance(value, list):
            texts = [*map(str, value), str(value), ",".join(map(str, value))]
            return any(fnmatchcase(text, self.text) for text in texts)
        if value is None:
            return self.text in _MISSING
        if isinstance(value, bool):
            return self.text.lower() == str(value).lower()
        given, wanted = _number(value), _number(self.text)
        return given == wanted if given is not None else fnmatchcase(str(value), self.text)


def _compare(one: float | str, sign: str, other: float | str) -> bool:
    if sign in ("<=", ">=") and one == other:
        return True
    return one < other if sign[0] == "<" else one > other  # type: ignore[operator]


def _number(value: object) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None


def sort_rows(rows: Sequence[RunRow], column: str, *, descending: bool = False) -> list[RunRow]:
    """Sort runs by a column; those without a value, or with NaN, come last in any case."""
    values = [(row, row.value(column)) for row in rows]
    numbers = [
        (row, number)
        for row, value in values
        if not isinstance(value, str) and (number := _number(value)) is not None
        if number == number
    ]
    done = {id(row) for row, _ in numbers}
    texts = [
        (row, str(value))
        for row, value in values
        if id(row) not in done and value not in (None, "", []) and _number(value) is None
    ]
    done |= {id(row) for row, _ in texts}
    numbers.sort(key=lambda pair: pair[1], reverse=descending)
    texts.sort(key=lambda pair: pair[1], reverse=descending)
    last = [row for row in rows if id(row) not in done]
    return [*(row for row, _ in numbers), *(row for row, _ in texts), *last]
