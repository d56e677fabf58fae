"""``hookloop verify-hooks``: find the hooks of a config that change the training."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hookloop.cli.prove.verifying import prepared_task
from hookloop.cli.shared.arguments import config_and_overrides
from hookloop.cli.shared.output import set_result
from hookloop.cli.shared.report import print_error, print_text, reporting
from hookloop.cli.shared.table import show_table
from hookloop.short_runs.scratch import scratch_directory

if TYPE_CHECKING:
    from hookloop.short_runs.verify_hooks import Comparison

USER_ERROR = 2
COLUMNS = ("hook", "class", "declared as", "leaving it out changes")


@click.command("verify-hooks", short_help="List the hooks that change the training.")
@config_and_overrides
@click.option(
    "--iters",
    type=click.IntRange(min=1),
    default=40,
    show_default=True,
    help="Iterations to train.",
)
@reporting
def command(config: Path, overrides: tuple[str, ...], iters: int) -> int:
    """Train CONFIG with all of its hooks, and again with each of them left out.

    The weights and every recorded number of the training and the validation are compared, bit by
    bit. The exit code is 1 if a hook changes them without declaring that it takes part in the
    training. Nothing is left on disk, and nothing is sent to the services of the config's writers.
    """
    with scratch_directory("verify") as folder:
        _, task = prepared_task("verify-hooks", folder, config, overrides, iters)
        from hookloop.cli.prove.task_process import MODULE
        from hookloop.short_runs.verify_hooks import verify_hooks

        found = verify_hooks(MODULE, task, print_text)
    return _report(found)


def _report(found: Comparison) -> int:
    if found.own:
        set_result({"is_repeatable": False, "differences": found.own})
        print_error(
            f"two runs of this config differ already, in {found.own}. Seed what is random, "
            "and add setup.deterministic=true."
        )
        return USER_ERROR
    rows = [
        (
            one.name,
            one.kind,
            "takes part" if one.takes_part else "observes",
            one.changes or "nothing",
        )
        for one in found.hooks
    ]
    names = ("hook", "class", "declared", "changes")
    hooks = [dict(zip(names, row, strict=True)) for row in rows]
    set_result({"iters": found.iters, "hooks": hooks, "undeclared": found.undeclared})
    show_table(COLUMNS, rows, ("leaving it out changes",))
    if found.undeclared:
        print_error(
            "declared as observing, but they change the training: "
            f"{', '.join(found.undeclared)}. A hook that is meant to do so declares "
            "takes_part_in_training = True."
        )
    return int(bool(found.undeclared))
