"""``hookloop kill-test``: kill random ranks at random moments, and check the bits at the end."""

from __future__ import annotations

import random
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hookloop.cli.prove.verifying import logical_ranks, prepared_task
from hookloop.cli.shared.arguments import config_and_overrides
from hookloop.cli.shared.output import set_result
from hookloop.cli.shared.report import print_error, print_text, reporting
from hookloop.cli.train.launch import read_time
from hookloop.short_runs.scratch import scratch_directory

if TYPE_CHECKING:
    from hookloop.short_runs.kill_test import Survived


@click.command("kill-test", short_help="Kill random ranks of a training, and check its end.")
@config_and_overrides
@click.option(
    "--ranks", type=click.IntRange(min=1), default=1, metavar="N", help="Train on N ranks."
)
@click.option(
    "--mtbf",
    default="20 s",
    metavar="TIME",
    callback=read_time,
    show_default=True,
    help="Mean time between two signals, from the first update of the ranks.",
)
@click.option(
    "--kills",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="How many signals to send.",
)
@click.option(
    "--iters",
    type=click.IntRange(min=2),
    default=200,
    show_default=True,
    help="Iterations to train.",
)
@click.option("--seed", type=int, help="Decides moments, ranks and signals; random by default.")
@reporting
def command(
    config: Path,
    overrides: tuple[str, ...],
    ranks: int,
    mtbf: float,
    kills: int,
    iters: int,
    seed: int | None,
) -> int:
    """Train CONFIG undisturbed, then under fire: SIGKILL, SIGSTOP, SIGTERM to random ranks.

    After a signal that ends the ranks they are started again and continue from the newest
    checkpoint. A training that is complete before all signals were sent begins again. Each end is
    compared with the undisturbed training, bit by bit; if it differs, the exit code is 1. Nothing
    is left on disk, and nothing is sent to the services of the config's writers.
    """
    from hookloop.short_runs.kill_test import KillTest, check_system

    check_system()
    chosen = random.SystemRandom().randrange(2**31) if seed is None else seed
    with scratch_directory("kill") as folder:
        loaded, task = prepared_task("kill-test", folder, config, overrides, iters, ranks)
        print_text(f"--seed {chosen}")
        from hookloop.cli.prove.task_process import MODULE

        has_logical = logical_ranks(loaded) > 0
        test = KillTest(
            MODULE,
            task,
            mean_time=mtbf,
            seed=chosen,
            has_logical=has_logical,
            tell=print_text,
        )
        survived = test.run(kills)
    return _report(survived, kills, chosen)


def _report(survived: Survived, kills: int, seed: int) -> int:
    faults, differences = survived.faults, [str(one) for one in survived.differences]
    times = sorted(one.recovery for one in faults if one.recovery is not None)
    set_result(
        {
            "result": "different" if differences else "exact",
            "seed": seed,
            "iters": survived.iters,
            "rounds": survived.rounds,
            "faults": [asdict(one) for one in faults],
            "differences": differences,
        }
    )
    if differences:
        print_error("the training under fire did not end as the undisturbed one.")
        for line in differences:
            print_text(f"  {line}", err=True)
        return 1
    if len(faults) < kills:
        print_text(
            f"Only {len(faults)} of {kills} signals were sent: a training of {survived.iters} "
            "iterations ended before the next one. Write a shorter --mtbf, or more --iters."
        )
    counts = {name: sum(one.fault == name for one in faults) for name in ("SIGKILL", "SIGSTOP")}
    counts["SIGTERM"] = len(faults) - sum(counts.values())
    print_text(
        f"exact: {survived.rounds} x {survived.iters} iterations, "
        + ", ".join(f"{count} {name}" for name, count in counts.items())
        + (f"; {times[len(times) // 2]:.1f} s to the next update (median)" if times else "")
        + "."
    )
    return 0
