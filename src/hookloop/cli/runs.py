"""``hookloop runs``: how the runs of a directory stand."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hookloop.cli.report import reporting, say
from hookloop.cli.table import show_table

if TYPE_CHECKING:
    from hookloop.runs.reader import RunSummary

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
        say(f"There is no run in '{directory}'.")
        return 0
    show_table(COLUMNS, [_cells(run) for run in runs], wide=("run", "outcome", "best"))
    return 0


def _cells(run: RunSummary) -> tuple[str, ...]:
    best = f"{run.best.metric} {run.best.value:.4g} (epoch {run.best.epoch})" if run.best else ""
    return (
        run.name,
        f"{run.status} ({run.reason})" if run.reason else run.status,
        str(run.epochs),
        str(run.iters),
        best,
        run.started.astimezone().strftime("%Y-%m-%d %H:%M") if run.started else "",
        str(timedelta(seconds=round(run.seconds))) if run.seconds is not None else "",
    )
