"""``hookloop rm``: delete runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
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
@click.option("--with-children", is_flag=True, help="Delete the runs that come from them, too.")
@click.option(
    "--detach", is_flag=True, help="Copy the past into the runs that come from them, which stay."
)
@click.option("--yes", is_flag=True, help="Delete without asking.")
@reporting
def command(
    runs: tuple[Path, ...], failed: bool, dead: bool, with_children: bool, detach: bool, yes: bool
) -> int:
    """Delete the directories of RUNs, with their checkpoints.

    Only directories of runs are deleted, never through a link, and never one that is being trained.
    Checkpoints of a run in other stores are named, and stay. A run from which another one came is
    kept, because the other one reads its past there.
    """
    from hookloop.runs import removal
    from hookloop.runs.removal import plan_removal, remove_run

    if with_children and detach:
        raise click.UsageError("--with-children deletes them, and --detach keeps them: take one.")

    wanted = {name for name, is_chosen in (("failed", failed), ("dead", dead)) if is_chosen}
    paths = list(dict.fromkeys(_expanded(runs, wanted) if wanted else runs))
    if with_children:
        paths = removal.with_children(paths)
    children = removal.check_children(paths)
    if children and not detach:
        raise HookloopError(_named(children))
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
    detached = [child for of in children.values() for child in of]
    for child in detached:
        removal.keep_past(child)
        print_text(f"{child} has its past itself now")
    for plan in plans:
        try:
            remove_run(plan.path)
        except OSError as error:
            raise HookloopError(f"'{plan.path}' cannot be deleted: {error}") from error
        deleted.append(plan)
        print_text(f"deleted {_describe(plan)}")
    freed = sum(plan.size for plan in deleted)
    left = [place for plan in deleted for place in plan.elsewhere]
    set_result(
        {
            "deleted": [str(plan.path) for plan in deleted],
            "bytes": freed,
            "left": left,
            "detached": [str(one) for one in detached],
        }
    )
    print_text(f"{_shown(freed)} freed.")
    return 0


def _named(children: Mapping[Path, list[Path]]) -> str:
    """Say why runs are not deleted, with the runs that come from them."""
    said = [f"'{path}' is the past of {_listed(of)}" for path, of in children.items()]
    return (
        f"{'; '.join(said)}. --detach copies the past into them, --with-children deletes them, too."
    )


def _listed(paths: list[Path]) -> str:
    shown = [f"'{os.path.relpath(path)}'" for path in paths[:8]]
    more = [f"{len(paths) - 8} more"] if len(paths) > 8 else []
    return ", ".join([*shown, *more])


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
