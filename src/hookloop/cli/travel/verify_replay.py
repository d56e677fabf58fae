"""``hookloop verify-replay``: train a while, and repeat random iterations in other processes."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from hookloop.cli.shared.arguments import config_and_overrides
from hookloop.cli.shared.output import set_result
from hookloop.cli.shared.report import print_error, print_text, reporting

DIFFERENT, REFUSED = 1, 2


@click.command("verify-replay", short_help="Prove that a replay of a config is exact.")
@config_and_overrides
@click.option(
    "--iters",
    type=click.IntRange(min=2),
    default=40,
    show_default=True,
    help="Iterations to train.",
)
@click.option(
    "--times", type=click.IntRange(min=1), default=3, show_default=True, help="How many to repeat."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Which of them.")
@click.option("--inject", metavar="FAULT", help="Plant a fault, such as flip:layer2.weight@120.")
@reporting
def command(
    config: Path,
    overrides: tuple[str, ...],
    iters: int,
    times: int,
    seed: int,
    inject: str | None,
) -> int:
    """Train the first iterations of CONFIG, and replay random ones in other processes.

    Each replay begins with the checkpoint before, and is compared with what the training recorded
    of every iteration: bits of loss, weights, gradients, optimizers, buffers, random generators and
    samples. The exit code is 1 if one differs, and 2 if a replay of this config cannot be exact.
    With --inject the training has a fault, and it is shown what a replay finds; the exit code is
    then 1 if it is found. Nothing is left on disk.
    """
    from hookloop.config.build import arguments
    from hookloop.config.load import load
    from hookloop.hooks.guarding.plant_fault import Fault
    from hookloop.short_runs.verify_replay import repeat, scratch_run, train_for_replay

    fault = None if inject is None else Fault.parse(inject)
    loaded = load(config, overrides)
    if loaded.tree.get("seed") is None:
        print_text(
            "The config has no seed; 0 is used, so that the first weights can be made again."
        )
        loaded = load(config, (*overrides, "seed=0"))
    with scratch_run() as folder:
        run_dir = Path(folder) / "run"
        done = train_for_replay(
            lambda directory: arguments(loaded, run_dir=directory), run_dir, iters, fault
        )
        found = repeat(run_dir, done, times, seed, fault)
    refused = [one for one in found if one.result == "refused"]
    different = [one for one in found if one.result == "different"]
    set_result(
        {
            "command": "verify-replay",
            "runs": [],
            "iters": [1, done],
            "exact": not refused and not different,
            "why_not": [one.difference for one in refused],
            "planted": None if fault is None else str(fault),
            "replays": [asdict(one) for one in found],
        }
    )
    for one in found:
        where = f"iteration {one.iter}, from {one.begun or 'the beginning'}"
        if one.result == "equal":
            print_text(f"{where}: equal to the last bit.")
    for one in refused:
        print_error(one.difference)
    for one in different:
        print_error(f"iteration {one.iter} differs first at iteration {one.at}: {one.difference}")
    if fault is not None and not different and not refused:
        print_text(f"{fault} was planted, and no replay found it.")
    return REFUSED if refused else DIFFERENT if different else 0
