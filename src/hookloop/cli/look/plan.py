"""``hookloop plan``: show which hooks act at which mount point."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hookloop.cli.shared.arguments import config_and_overrides
from hookloop.cli.shared.output import set_result
from hookloop.cli.shared.report import print_text, reporting
from hookloop.cli.shared.table import show_table
from hookloop.cli.train.check import build_without_run
from hookloop.short_runs.scratch import scratch_directory

if TYPE_CHECKING:
    from hookloop.trainer.planning import Row
    from hookloop.trainer.schedule_curve import Curve

COLUMNS = ("point", "hook", "priority", "every", "reads", "writes")


@click.command("plan", short_help="Show which hook acts at which mount point.")
@config_and_overrides
@reporting
def command(config: Path, overrides: tuple[str, ...]) -> int:
    """Show the timetable of CONFIG: each mount point with the hooks that act there, in order.

    Below it is the learning rate over the whole run, where a schedule moves it.
    """
    from hookloop.config.load import load
    from hookloop.engine.points import POINTS
    from hookloop.trainer.schedule_curve import curves_of

    loaded = load(config, overrides)
    with scratch_directory("plan") as scratch:
        trainer = build_without_run(loaded, scratch)
        rows, curves = trainer.timetable(), curves_of(trainer.run)
    show_table(COLUMNS, _cells(rows), wide=("reads", "writes"))
    used = {row.point for row in rows}
    unused = [point.name for point in POINTS if point.name not in used]
    schedules = [{**asdict(one), "points": [*one.points]} for one in curves]
    set_result({"calls": [asdict(row) for row in rows], "unused": unused, "schedules": schedules})
    print_text(f"\nNo hook acts at: {', '.join(unused)}.")
    for curve in curves:
        print_text(f"\n{_draw(curve)}")
    return 0


def _draw(curve: Curve) -> str:
    """Draw a schedule over the whole run, with its highest rate and where that is."""
    from hookloop.hooks.showing._wording import sparkline

    which = "lr" if curve.name == "default" else f"lr by '{curve.name}'"
    evenly = curve.evenly()
    top = max(range(len(curve.rates)), key=curve.rates.__getitem__)
    text = (
        f"{which}  {curve.rates[0]:.3g} {sparkline(evenly)} {curve.rates[-1]:.3g}"
        f"  {curve.kind}, highest {curve.rates[top]:.3g} at {curve.at(curve.points[top])} "
        f"of {curve.steps * curve.count}"
    )
    return f"{text}\nwarning: {curve.problem}" if curve.problem else text


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
