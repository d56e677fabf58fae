"""``hookloop explain``: who wrote a metric, from what, when, and who reads it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hookloop.cli.look.completing import complete_run
from hookloop.cli.shared.output import set_result
from hookloop.cli.shared.report import print_text, reporting
from hookloop.errors import HookloopError
from hookloop.every import count_of

if TYPE_CHECKING:
    from hookloop.runs.explaining import Actor, Explanation


@click.command("explain", short_help="Say where a metric of a run comes from.")
@click.argument("run", type=click.Path(path_type=Path), shell_complete=complete_run)
@click.argument("metric")
@reporting
def command(run: Path, metric: str) -> int:
    """Say where METRIC of RUN comes from: who wrote it, from what, when, and who reads it.

    Nothing is trained or imported: it is read from the timetable, the config and the metrics of the
    run.
    """
    from hookloop.runs.explaining import explain
    from hookloop.runs.tags import open_run

    try:
        found = explain(open_run(run), metric)
    except (OSError, ValueError) as error:
        raise HookloopError(f"'{run}' cannot be read: {error}") from error
    set_result({"command": "explain", "runs": [str(run)], **asdict(found)})
    _show(found)
    return 0


def _show(found: Explanation) -> None:
    print_text(f"{found.name}: {found.origin}.")
    for one in found.writers:
        print_text(f"  written by  {_actor(one)}")
    if found.recorded:
        apart = "" if found.apart is None else f", every {count_of(found.apart, 'iteration')}"
        span = f"iterations {found.first} to {found.last}{apart}"
        best = "" if found.best is None else f", best {found.best:.6g}"
        print_text(f"  recorded    {count_of(found.recorded, 'value')}, {span}")
        print_text(f"  value       {found.value:.6g} at the end{best}")
    else:
        print_text("  recorded    no value yet")
    for one in found.readers:
        print_text(f"  read by     {_actor(one)}")
    for key, value in found.mentions.items():
        print_text(f"  named in    {key}: {value}")
    for name in found.afterwards:
        print_text(f"  afterwards  recorded by a replay with {name}")
    if found.outputs:
        print_text(f"  goes to     {', '.join(found.outputs)}")
    if found.is_of_machine:
        print_text("  It measures the machine: two equal runs differ in it.")


def _actor(one: Actor) -> str:
    where = [f"{point}, every {every}" if every else point for point, every in one.points.items()]
    at = f", at {'; '.join(where)}" if where else ""
    return f"{one.hook} ({one.type}){at}"
