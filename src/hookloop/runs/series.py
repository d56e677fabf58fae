"""The metrics of a run as columns, for comparisons and plots."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from hookloop.runs.afterwards import read_afterwards
from hookloop.runs.layout import RunDir
from hookloop.runs.lineage import inherited_records
from hookloop.runs.metrics_file import STAMPS, records


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


def history(
    run: RunDir | str | Path, *, afterwards: bool = True, past: bool = True
) -> dict[str, Column]:
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


def _columns(
    lines: Iterable[dict[str, object]], *, is_afterwards: bool = False
) -> dict[str, Column]:
    columns: dict[str, Column] = {}
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
