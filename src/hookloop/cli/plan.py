"""``hookloop plan``: show which hooks act at which mount point."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hookloop.cli.arguments import config_and_overrides
from hookloop.cli.check import build_without_run
from hookloop.cli.output import set_result
from hookloop.cli.report import print_text, reporting
from hookloop.cli.scratch import scratch_directory
from hookloop.cli.table import show_table

if TYPE_CHECKING:
    from hookloop.trainer.timetable import Row

COLUMNS = ("point", "hook", "priority", "every", "reads", "writes")


@click.command("plan", short_help="Show which hook acts at which mount point.")
@config_and_overrides
@reporting
def command(config: Path, overrides: tuple[str, ...]) -> int:
    """Show the timetable of CONFIG: each mount point with the hooks that act there, in order."""
    from hookloop.config.load import load
    from hookloop.core.points import POINTS

    loaded = load(config, overrides)
    with scratch_directory("plan") as scratch:
        rows = build_without_run(loaded, scratch).timetable()
    show_table(COLUMNS, _cells(rows), wide=("reads", "writes"))
    used = {row.point for row in rows}
    unused = [point.name for point in POINTS if point.name not in used]
    set_result({"calls": [asdict(row) for row in rows], "unused": unused})
    print_text(f"\nNo hook acts at: {', '.join(unused)}.")
    return 0


def _cells(rows: list[Row]) -> list[tuple[str, ...]]:
    cells: list[tuple[str, ...]] = []
    last = ""
    for row in rows:
        cells.append(
            (
                "" if row.point == last else row.point,
                row.hook,
                str(row.priority),
                str(row.every or ""),
                ", ".join(row.reads),
                ", ".join(row.writes),
            )
        )
        last = row.point
    return cells
