"""``hookloop runs``: list the runs of a directory, by config key and metric."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hookloop.cli.shared.output import set_result
from hookloop.cli.shared.report import print_text, reporting
from hookloop.cli.shared.table import show_table
from hookloop.runs.csv_cells import safe_row
from hookloop.runs.shown import make_safe_line

if TYPE_CHECKING:
    from hookloop.runs.table import RunRow

WIDE = 160
"""The most characters of a cell: the files may hold more than fits on a screen."""

WRAPPED = ("run", "outcome", "best", "tags", "note")


@click.command("runs", short_help="List runs with their outcome and best metric.")
@click.argument("directory", type=click.Path(path_type=Path), default=Path("runs"))
@click.option(
    "--columns",
    metavar="A,B,...",
    help="Columns to show: config keys, metrics, best.METRIC, tags, ...",
)
@click.option("--sort", "by", metavar="COLUMN", help="Sort by a column; -COLUMN: largest first.")
@click.option("--reverse", is_flag=True, help="Reverse the order.")
@click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="COLUMN=VALUE",
    help="Show only runs that match; also with <, > or !=.",
)
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV, with all digits.")
@reporting
def command(
    directory: Path,
    columns: str | None,
    by: str | None,
    reverse: bool,
    filters: tuple[str, ...],
    as_csv: bool,
) -> int:
    """List the runs in DIRECTORY and below it, the oldest first; by default those in runs/.

    The columns are by default the config keys that differ between the runs, and the best metric.
    """
    from hookloop.runs.table import Filter, check_columns, read_rows

    if not directory.is_dir():
        raise click.BadParameter(f"there is no directory '{directory}'.", param_hint="DIRECTORY")
    found = read_rows(directory)
    conditions = [Filter.parse(text) for text in filters]
    chosen = [name.strip() for name in columns.split(",") if name.strip()] if columns else []
    check_columns(found, [*chosen, *(one.column for one in conditions)])
    rows = [row for row in found if all(one.accepts(row) for one in conditions)]
    rows = _sorted(rows, by, reverse=reverse)
    set_result(
        [{"run": row.run.name, **{name: row.value(name) for name in chosen}} for row in rows]
        if chosen
        else [row.record() for row in rows]
    )
    if not rows and not as_csv:
        print_text(f"There is no {'such ' if found else ''}run in '{directory}'.")
        return 0
    shown, more = (["run", *(name for name in chosen if name != "run")], 0)
    if not chosen:
        shown, more = _default_columns(rows)
    if as_csv:
        click.echo(_csv(shown, rows), nl=False)
        return 0
    show_table(shown, [[_cell(row, name) for name in shown] for row in rows], wide=WRAPPED)
    if more:
        print_text(f"\n{more} more config keys differ: --columns chooses.")
    return 0


def _sorted(rows: list[RunRow], by: str | None, *, reverse: bool) -> list[RunRow]:
    from hookloop.runs.table import check_columns, sort_rows

    if by is None:
        return rows[::-1] if reverse else rows
    column = by.removeprefix("-")
    check_columns(rows, [column])
    return sort_rows(rows, column, descending=by.startswith("-") != reverse)


def _default_columns(rows: list[RunRow]) -> tuple[list[str], int]:
    """Return the columns, and how many keys differ that are not among them."""
    from hookloop.runs.table import MOST_KEYS, differing_keys

    keys = differing_keys(rows)
    some = {
        "ranks": any(row.run.ranks > 1 for row in rows),
        "parent": any(row.run.parent is not None for row in rows),
        "last": any(row.value("last") is not None for row in rows),
        "tags": any(row.labels.tags for row in rows),
        "note": any(row.labels.note for row in rows),
    }
    names = (
        "run",
        "outcome",
        "epochs",
        "iters",
        "ranks",
        "parent",
        *keys[:MOST_KEYS],
        "best",
        "last",
    )
    names = (*names, "started", "duration", "tags", "note")
    return [name for name in names if some.get(name, True)], max(0, len(keys) - MOST_KEYS)


def _cell(row: RunRow, column: str) -> str:
    if column == "started":
        started = row.run.started
        return started.astimezone().strftime("%Y-%m-%d %H:%M") if started else ""
    value = row.value(column)
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return make_safe_line(", ".join(map(str, value)), WIDE)
    return "" if value is None else make_safe_line(str(value), WIDE)


def _csv(columns: list[str], rows: list[RunRow]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(safe_row(columns))
    for row in rows:
        values = [row.value(name) for name in columns]
        cells = [" ".join(map(str, one)) if isinstance(one, list) else one for one in values]
        writer.writerow(safe_row(cells))
    return text.getvalue()
