"""``hookloop fork``: begin a new run at an iteration of another one."""

from __future__ import annotations

import shutil
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import click

from hookloop.cli.look.completing import complete_override
from hookloop.cli.shared.arguments import aliases
from hookloop.cli.shared.output import current_output, set_result
from hookloop.cli.shared.report import print_text, reporting
from hookloop.cli.train.launch import Launch, launch_options
from hookloop.cli.train.train import strict_option, train
from hookloop.errors import HookloopError
from hookloop.every import count_of

if TYPE_CHECKING:
    from hookloop.config.forking import Fork


@click.command("fork", short_help="Begin a new run at an iteration of another one.")
@aliases
@click.argument("run", metavar="RUN[@ITER]")
@click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...", shell_complete=complete_override)
@click.option("--iters", type=click.IntRange(min=1), metavar="N", help="Stop after N iterations.")
@click.option("--run-dir", type=click.Path(path_type=Path), help="Directory of the new run.")
@click.option("--no-train", is_flag=True, help="Make the run; hookloop resume trains it.")
@launch_options
@strict_option
@reporting
def command(
    run: str,
    overrides: tuple[str, ...],
    iters: int | None,
    run_dir: Path | None,
    no_train: bool,
    strict: bool,
    launch: Launch,
) -> int:
    """Begin a new run at iteration ITER of RUN, by default at its newest checkpoint, and train it.

    RUN is not changed, and may be trained meanwhile. The new run shares its past: the checkpoint is
    linked and not copied, and curves begin with those of RUN. Between two checkpoints, the way to
    ITER is repeated bit for bit. Any value can be changed on purpose, settings of the optimizer
    too. The config of RUN is code: what it names is imported and built.
    """
    from hookloop.config.forking import fork
    from hookloop.config.load import load

    launch.check()
    begun = perf_counter()
    home, at = parse_place(run)
    made = fork(home, at=at, change=overrides, iters=iters, into=run_dir, tell=print_text)
    _show(made)
    if no_train:
        _set_result(made, perf_counter() - begun)
        return 0
    config = load(made.run_dir)
    try:
        if launch.ranks is not None:
            flags = ["--strict"] * strict
            with launch.on_ranks(config) as run_on_ranks:
                code = run_on_ranks(["resume", str(made.run_dir), *flags])
        else:
            code = train(config, made.run_dir, resume=True, strict=strict)
    except HookloopError:
        _remove_unbegun(made)
        raise
    _set_result(made, perf_counter() - begun)
    return code


def parse_place(text: str) -> tuple[Path, int | None]:
    """Read a run, or a run and an iteration: ``runs/one@1200``.

    >>> parse_place("runs/one@1200"), parse_place("runs/one@20@40")
    ((PosixPath('runs/one'), 1200), (PosixPath('runs/one@20'), 40))
    """
    home, sign, number = text.rpartition("@")
    # A fork has an @ in its own name.
    if not sign or (Path(text).is_dir() and not Path(home).is_dir()):
        return Path(text), None
    if not number.isdecimal():
        if Path(text).is_dir():
            return Path(text), None
        raise HookloopError(f"'{text}': '{number}' is not an iteration. Write RUN@1200.")
    return Path(home), int(number)


def _show(made: Fork) -> None:
    how = f"{count_of(made.replayed, 'iteration')} repeated" if made.replayed else "linked"
    if not (made.replayed or made.is_linked):
        size = sum(one.stat().st_size for one in made.checkpoint.parent.rglob("*") if one.is_file())
        how = f"copied, {size / 1e6:,.1f} MB: there are no links between these two places"
    print_text(f"{made.run_dir}: {made.parent} from iteration {made.iter} on ({how})")


def _set_result(made: Fork, seconds: float) -> None:
    trained = current_output().result
    set_result(
        {
            "command": "fork",
            "runs": [str(made.parent), str(made.run_dir)],
            "iters": [made.iter, made.iter],
            "exact": True,
            "why_not": [],
            "seconds": {"predicted": None, "taken": seconds},
            "run_dir": str(made.run_dir),
            "checkpoint": str(made.checkpoint),
            "linked": made.is_linked,
            "replayed": made.replayed,
            "changed": list(made.changed),
            "trained": trained,
        }
    )


def _remove_unbegun(made: Fork) -> None:
    """Delete a run that was rejected before its first iteration: its name is free again."""
    from hookloop.runs.layout import RunDir

    if not RunDir(made.run_dir).interventions_file.exists():
        shutil.rmtree(made.run_dir)
