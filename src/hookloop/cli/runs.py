"""``hookloop runs``: list the runs of a directory and their status."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hookloop.cli.report import print_text, reporting
from hookloop.cli.table import show_table
from hookloop.runs.shown import make_safe_line

if TYPE_CHECKING:
    from hookloop.runs.reader import RunSummary

WIDE = 160
"""The most characters of a cell: the files may hold more than fits on a screen."""

COLUMNS = ("run", "outcome", "epochs", "iters", "best", "started", "duration")


@click.command("runs", short_help="List runs with their outcome and best metric.")
@click.argument("directory", type=click.Path(path_type=Path), default=Path("runs"))
@reporting
def command(directory: Path) -> int:
    """List the runs in DIRECTORY and below it, the oldest first; by default those in runs/."""
    from hookloop.runs.reader import list_runs

    if not directory.is_dir():
        raise click.BadParameter(f"there is no directory '{directory}'.", param_hint="DIRECTORY")
    runs = list_runs(directory)
    if not runs:
        print_text(f"There is no run in '{directory}'.")
        return 0
    columns, rows = list(COLUMNS), [list(_cells(run)) for run in runs]
    if any(run.ranks > 1 for run in runs):
        for line, cell in zip(
            (columns, *rows), ("ranks", *(run.ranks for run in runs)), strict=True
        ):
            line.insert(COLUMNS.index("best"), str(cell))
    show_table(columns, rows, wide=("run", "outcome", "best"))
    return 0


def _cells(run: RunSummary) -> tuple[str, ...]:
    best = ""
    if run.best is not None:
        metric = make_safe_line(run.best.metric, WIDE)
        best = f"{metric} {run.best.value:.4g} (epoch {run.best.epoch})"
    without = f", without {', '.join(run.disabled)}" if run.disabled else ""
    outcome = f"{run.status} ({run.reason})" if run.reason else run.status
    return (
        make_safe_line(run.name, WIDE),
        make_safe_line(f"{outcome}{without}", WIDE),
        str(run.epochs),
        str(run.iters),
        best,
        run.started.astimezone().strftime("%Y-%m-%d %H:%M") if run.started else "",
        str(timedelta(seconds=round(run.seconds))) if run.seconds is not None else "",
    )
