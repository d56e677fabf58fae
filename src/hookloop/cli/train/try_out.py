"""``hookloop try``: every part of a training once and small, and what the whole would take."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hookloop.cli.shared.arguments import config_and_overrides
from hookloop.cli.shared.output import set_result
from hookloop.cli.shared.report import FAILED, print_error, print_text, reporting
from hookloop.cli.train.launch import Launch, ranks_option
from hookloop.every import count_of
from hookloop.short_runs.scratch import scratch_directory

if TYPE_CHECKING:
    from hookloop.short_runs.try_out import Trial

MIB = 2**20


@click.command("try", short_help="Try every part of a training once, and estimate its cost.")
@config_and_overrides
@ranks_option
@click.option("--scratch", type=click.Path(path_type=Path), hidden=True)
@reporting
def command(
    config: Path, overrides: tuple[str, ...], ranks: int | None, scratch: Path | None
) -> int:
    """Train CONFIG for two iterations, validate, save, restore and test, and leave nothing behind.

    All hooks act, except those that send to a service or write outside of the run; these are named.
    It prints seconds per iteration, memory, the size of a checkpoint and an estimate of the hours
    that the whole training takes.
    """
    from hookloop.config.load import load

    launch = Launch(ranks)
    launch.check()
    loaded = load(config, overrides)  # A bad file is rejected without waiting for torch.
    # The directory is that of the launcher, which outlives all ranks.
    with scratch_directory("try") as own:
        if ranks is not None:
            with launch.on_ranks(loaded) as run_on_ranks:
                return run_on_ranks(["try", str(config), *overrides, "--scratch", own])
        from hookloop.config.build import arguments
        from hookloop.parallel.world import World
        from hookloop.short_runs.try_out import try_out

        def make(run_dir: Path, resume: str | bool) -> dict[str, object]:
            return arguments(load(config, overrides), run_dir=run_dir, resume=resume)

        trial = try_out(make, scratch or Path(own))
    return _report(trial, config) if World.from_environment().is_main else _code(trial)


def _code(trial: Trial) -> int:
    return 0 if trial.is_restored else FAILED


def _report(trial: Trial, config: Path) -> int:
    set_result(asdict(trial))
    _show(trial, config)
    if not trial.is_restored:
        print_error("a new trainer that loaded the checkpoint is not the same as the saved one.")
        for difference in trial.differences:
            print_text(f"  {difference}", err=True)
    return _code(trial)


def _show(trial: Trial, config: Path) -> None:
    val, test = trial.seconds_per_val_batch, trial.test_batches
    memory = " MiB, ".join(
        f"{name.removesuffix('_peak')} {size:,.0f}" for name, size in trial.memory.items()
    )
    rows = {
        "ranks": str(trial.ranks) if trial.ranks > 1 else "",
        "training": (
            f"{count_of(trial.iters, 'iteration')}, {trial.seconds_per_iter:.3g} s per iteration "
            f"(the first {trial.first_iter_seconds:.3g} s)"
        ),
        "validation": (
            "" if val is None else f"{count_of(trial.val_batches, 'batch')}, {val:.3g} s per batch"
        ),
        "checkpoint": f"{trial.checkpoint_bytes / MIB:,.2f} MiB{_restored(trial)}",
        "test": count_of(test, "batch") if test else "",
        "peak memory": f"{memory} MiB{' on one rank' * (trial.ranks > 1)}" if memory else "unknown",
        "whole training": _estimate(trial),
        "left out": "; ".join(f"{name}: {why}" for name, why in trial.left_out.items()),
        "failed hooks": "; ".join(f"{name}: {why}" for name, why in trial.failed_hooks.items()),
    }
    print_text(f"{config}: tried every part once.")
    for name, text in rows.items():
        if text:
            print_text(f"  {name:<16}{text}")


def _restored(trial: Trial) -> str:
    return ", restored into a new trainer with the same bits" if trial.is_restored else ""


def _estimate(trial: Trial) -> str:
    """Describe how long the whole training takes."""
    if trial.hours is None:
        return "unknown: the number of iterations is not known"
    time = f"{trial.hours:.3g} hours" if trial.hours >= 0.1 else f"{trial.hours * 60:.2g} minutes"
    parts = [count_of(trial.total_iters or 0, "iteration")]
    if trial.seconds_per_val_batch is not None:
        parts.append(_validations(trial))
    made = count_of(trial.iters, "iteration")
    return f"about {time} (estimated from {made}): {', '.join(parts)}"


def _validations(trial: Trial) -> str:
    if trial.all_val_batches is None:
        return "validations not counted, as their number or length is not known"
    if trial.validations is None:
        return f"{count_of(trial.all_val_batches, 'batch')} of validation, all streams together"
    batches = count_of(trial.total_val_batches or 0, "batch")
    return f"{count_of(trial.validations, 'validation')} of {batches}"
