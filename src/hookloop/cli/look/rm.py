"""``hookloop rm``: delete runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hookloop.cli.shared.output import set_result
from hookloop.cli.shared.report import print_text, reporting
from hookloop.errors import HookloopError

if TYPE_CHECKING:
    from hookloop.runs.removal import Removal


@click.command("rm", short_help="Delete runs.")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@click.option("--failed", is_flag=True, help="Only those that failed; RUN may be a folder of runs.")
@click.option("--dead", is_flag=True, help="Only those whose process was killed; likewise.")
@click.option("--yes", is_flag=True, help="Delete without asking.")
@reporting
def command(runs: tuple[Path, ...], failed: bool, dead: bool, yes: bool) -> int:
    """Delete the directories of RUNs, with their checkpoints.

    Only directories of runs are deleted, never through a link, and never one that is being trained.
    Checkpoints of a run in other stores are named, and stay.
    """
    from hookloop.runs.removal import plan_removal, remove_run

    wanted = {name for name, is_chosen in (("failed", failed), ("dead", dead)) if is_chosen}
    paths = list(dict.fromkeys(_expanded(runs, wanted) if wanted else runs))
    # All are checked before the first is deleted.
    plans = [plan_removal(path) for path in paths]
    if not plans:
        set_result({"deleted": [], "bytes": 0})
        print_text("There is no such run.")
        return 0
    if not (yes or _is_confirmed(plans)):
        print_text("Nothing is deleted.")
        return 1
    deleted: list[Removal] = []
    for plan in plans:
        try:
            remove_run(plan.path)
        except OSError as error:
            raise HookloopError(f"'{plan.path}' cannot be deleted: {error}") from error
        deleted.append(plan)
        print_text(f"deleted {_describe(plan)}")
    freed = sum(plan.size for plan in deleted)
    left = [place for plan in deleted for place in plan.elsewhere]
    set_result({"deleted": [str(plan.path) for plan in deleted], "bytes": freed, "left": left})
    print_text(f"{_shown(freed)} freed.")
    return 0


def _expanded(paths: tuple[Path, ...], wanted: set[str]) -> Iterator[Path]:
    """Yield the runs in the directories that ended in one of these ways."""
    from hookloop.runs.reader import list_runs

    for path in paths:
        if not path.is_dir():
            raise HookloopError(f"There is no directory '{path}'.")
        yield from (run.path for run in list_runs(path) if run.status in wanted)


def _is_confirmed(plans: list[Removal]) -> bool:
    for plan in plans:
        print_text(_describe(plan), err=True)
    if not sys.stdin.isatty():
        raise click.UsageError("there is no terminal to ask on: --yes deletes them.")
    return click.confirm(f"Delete {len(plans)} run{'s' * (len(plans) > 1)}?", err=True)


def _describe(plan: Removal) -> str:
    left = f"; not in {', '.join(plan.elsewhere)}" if plan.elsewhere else ""
    return f"{plan.path} ({plan.status}, {_shown(plan.size)}{left})"


def _shown(size: int) -> str:
    return f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.1f} kB"
