"""Print tables: framed on a terminal, aligned text everywhere else."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from hookloop.cli.shared.output import current_output
from hookloop.runs.shown import make_safe_line

Row = Sequence[str]

LONGEST = 1000
"""How many characters of a cell are shown."""


def show_table(columns: Sequence[str], rows: Sequence[Row], wide: Sequence[str]) -> None:
    """Print rows under their columns, one per line, with terminal codes escaped.

    Args:
        columns: The headings.
        rows: Rows with one cell per column.
        wide: The columns that may be wrapped if the terminal is too narrow.
    """
    if current_output().as_json:  # The result has it.
        return
    rows = [[make_safe_line(cell, LONGEST) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _show_framed(columns, rows, wide)
    else:
        click.echo(align([columns, *rows]))


def align(rows: Sequence[Row]) -> str:
    """Set rows in columns, two spaces apart.

    >>> print(align([("point", "hook"), ("before_run", "timing")]))
    point       hook
    before_run  timing
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
    return "\n".join(lines)


def _show_framed(columns: Sequence[str], rows: Sequence[Row], wide: Sequence[str]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=column not in wide)
    for row in rows:
        table.add_row(*row)
    # Cells are data: rich must not read a name in square brackets as mark-up.
    Console(markup=False, highlight=False).print(table)
