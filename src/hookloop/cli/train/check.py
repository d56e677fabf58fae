"""``hookloop check``: report everything that training would reject, without training."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from hookloop.cli.shared.arguments import config_and_overrides
from hookloop.cli.shared.output import set_result
from hookloop.cli.shared.report import print_text, reporting
from hookloop.every import count_of
from hookloop.short_runs.scratch import scratch_directory

if TYPE_CHECKING:
    from hookloop.config.tree import Config
    from hookloop.trainer.trainer import Trainer


@click.command("check", short_help="Report what training would reject.")
@config_and_overrides
@click.option(
    "--ranks",
    type=click.IntRange(min=1),
    metavar="N",
    help="Also report what a training on N ranks would reject; no process is started.",
)
@reporting
def command(config: Path, overrides: tuple[str, ...], ranks: int | None) -> int:
    """Build what CONFIG describes and report everything that training would reject.

    Nothing is trained, and no run directory is made.
    """
    from hookloop.config.load import load, show
    from hookloop.trainer.schedule_curve import judge_schedules

    loaded = load(config, overrides)
    with scratch_directory("check") as scratch, _as_rank(ranks):
        trainer = build_without_run(loaded, scratch)
        trainer.check()
        problems = judge_schedules(trainer.run)
        if ranks is not None:
            _check_devices(trainer, ranks)
    _check_directory(loaded)  # Apart, because the Trainer above has a temporary directory.
    set_result(
        {
            "config": show(loaded.path),
            "problems": [],
            "warnings": problems,
            "trains": _describe(trainer),
        }
    )
    print_text(f"{show(loaded.path)}: nothing to reject.  {_describe(trainer)}")
    for problem in problems:
        print_text(f"warning: {problem}")
    return 0


def _as_rank(ranks: int | None) -> AbstractContextManager[None]:
    """Return a context in which a Trainer is the first of so many ranks on one node."""
    from hookloop.parallel.world import World, assume

    return nullcontext() if ranks is None else assume(World(0, ranks, 0, ranks))


def _check_devices(trainer: Trainer, ranks: int) -> None:
    """Reject more ranks than there are devices: the last one would find none."""
    from hookloop.parallel.world import World, choose_device

    choose_device(trainer.run.device.type, World(ranks - 1, ranks, ranks - 1, ranks))


def build_without_run(config: Config, scratch: str) -> Trainer:
    """Build a Trainer that will not train; hooks that need a directory get a temporary one."""
    from hookloop.config.build import build

    # Without resume: no checkpoint is loaded just to look.
    return build(config, run_dir=scratch, resume=False)


def _check_directory(config: Config) -> None:
    """Reject a directory that is taken, or that has no run to resume."""
    from hookloop.errors import CheckpointError, ConfigError, Problem
    from hookloop.runs.layout import RunDir
    from hookloop.trainer.start import Start

    run_dir, resume = (cast("str | None", config.tree.get(name)) for name in ("run_dir", "resume"))
    if not resume:
        if run_dir is not None:
            RunDir(Path(run_dir)).reject_taken()
        return
    try:
        # This only looks: nothing is made or locked before `Start.open`.
        Start(run_dir, resume)
    except CheckpointError as error:
        key = error.argument or "resume"
        raise ConfigError([Problem(str(error), config.where((key,)))]) from error


def _describe(trainer: Trainer) -> str:
    run = trainer.run
    counts = [parameter.numel() for parameter in run.model.parameters()]
    trained = [p.numel() for p in run.model.parameters() if p.requires_grad]
    frozen = f" ({sum(counts) - sum(trained):,} frozen)" if sum(counts) != sum(trained) else ""
    parts = [
        f"{type(run.model).__name__}: {count_of(sum(counts), 'parameter')}{frozen}",
        count_of(len(run.hooks), "hook"),
    ]
    if not run.world.is_alone:
        parts.append(f"{run.world.size} ranks")
    if run.progress.total_iters is not None:
        parts.insert(1, count_of(run.progress.total_iters, "iteration"))
    return ", ".join(parts)
