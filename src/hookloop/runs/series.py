"""The metrics of a run as columns, for comparisons and plots."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape
from itertools import chain
from pathlib import Path
from typing import Any

from hookloop.errors import HookloopError, MissingMetricError, nearest
from hookloop.runs.afterwards import read_afterwards
from hookloop.runs.layout import RunDir
from hookloop.runs.lineage import inherited_records
from hookloop.runs.metrics_file import STAMPS, records
from hookloop.runs.policy import best_of, is_of_machine
from hookloop.runs.shown import make_safe_line


@dataclass
class Column:
    """The values of one metric.

    Attributes:
        iters: The iteration of each value, in the order of writing.
        values: The values.
        is_afterwards: Whether replays have recorded them, and not the run itself.
    """

    iters: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    is_afterwards: bool = False

    def at(self) -> dict[int, float]:
        """Return the values by iteration; of several in one iteration, the last."""
        return dict(zip(self.iters, self.values, strict=True))


class History(dict[str, Column]):
    """The metrics of a run as a table: for each metric a column, its values by iteration.

    >>> History({"val/loss": Column([3, 6], [0.5, 0.25]), "train/loss": Column([6], [0.75])})
    metric      values  first  last  best
    val/loss         2    0.5  0.25  0.25 at 6
    train/loss       1   0.75  0.75  0.75 at 6
    """

    def __missing__(self, name: str) -> Column:
        there = nearest(name, self) or f" There are: {', '.join(self) or 'none'}."
        raise MissingMetricError(f"The run has written no metric '{name}'.{there}")

    def rows(self) -> list[dict[str, float]]:
        """Return one row for each iteration with a metric: ``{"iter": 3, "val/loss": 0.5}``."""
        by_iter: dict[int, dict[str, float]] = {}
        for name, column in self.items():
            for iteration, value in column.at().items():
                by_iter.setdefault(iteration, {"iter": iteration})[name] = value
        return [by_iter[iteration] for iteration in sorted(by_iter)]

    def to_pandas(self) -> Any:  # noqa: ANN401 - pandas need not be installed
        """Return a table of pandas: a row for each iteration, a column for each metric.

        What was not recorded in an iteration is NaN there. It needs pandas.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise HookloopError(
                "history.to_pandas() needs pandas: pip install pandas. Without it, history.rows() "
                "returns a list of mappings."
            ) from error
        table = pd.DataFrame(self.rows(), columns=["iter", *self])
        return table.set_index("iter")

    def __repr__(self) -> str:
        if not self:
            return "no metrics were written: the default hook 'metrics' writes them"
        cells = [HEAD, *self._cells()]
        widths = [max(len(row[i]) for row in cells) for i in range(len(HEAD))]
        return "\n".join(
            "  ".join(
                cell.ljust(width) if i in (0, len(HEAD) - 1) else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in cells
        )

    def _repr_html_(self) -> str:
        """Return the table for a notebook."""
        if not self:
            return f"<p>{escape(repr(self))}</p>"
        head = "".join(f"<th>{name}</th>" for name in HEAD)
        rows = (
            "".join(f"<td>{escape(make_safe_line(cell))}</td>" for cell in row)
            for row in self._cells()
        )
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def _cells(self) -> list[tuple[str, ...]]:
        """Return the lines of the table; what measures the machine is left out."""
        lines: list[tuple[str, ...]] = []
        for name, column in self.items():
            if is_of_machine(name):
                continue
            first, last = (f"{column.values[i]:.4g}" for i in (0, -1))
            lines.append((name, f"{len(column.values)}", first, last, _best(name, column)))
        return lines


HEAD = ("metric", "values", "first", "last", "best")
"""The columns of a shown history."""


def _best(name: str, column: Column) -> str:
    """Return the best value of a metric, and its first iteration; empty if that is not known."""
    best = best_of(name, column.values)
    return "" if best is None else f"{best[1]:.4g} at {column.iters[best[0]]}"


def history(run: RunDir | str | Path, *, afterwards: bool = True, past: bool = True) -> History:
    """Return the metrics that a run has written, each with its iterations and values.

    Lines that are damaged, or still being written, are left out.

    Args:
        run: The directory of the run.
        afterwards: Whether to add what replays have recorded.
        past: Whether those of a fork begin with its parent's, until the iteration of the fork.
    """
    home = run if isinstance(run, RunDir) else RunDir(Path(run))
    shared = inherited_records(home) if past else ()
    columns = _columns(chain(shared, records(home.metrics_file, is_lenient=True)))
    if afterwards:
        later = _columns(read_afterwards(home), is_afterwards=True)
        columns |= {name: column for name, column in later.items() if name not in columns}
    return columns


def _columns(lines: Iterable[dict[str, object]], *, is_afterwards: bool = False) -> History:
    columns = History()
    for record in lines:
        iteration = record.get("iter")
        if not isinstance(iteration, int):
            continue
        for name, number in record.items():
            if name in STAMPS or isinstance(number, bool) or not isinstance(number, int | float):
                continue
            column = columns.setdefault(name, Column(is_afterwards=is_afterwards))
            column.iters.append(iteration)
            column.values.append(_float(number))
    return columns


def _float(number: float) -> float:
    try:
        return float(number)
    except OverflowError:  # A whole number of hundreds of digits is damage.
        return math.inf
