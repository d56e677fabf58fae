"""``hookloop train``: train what a config describes, or continue a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hookloop.cli.shared.arguments import config_and_overrides, run_directory_of
from hookloop.cli.shared.output import set_result
from hookloop.cli.shared.report import print_error, print_text, reporting
from hookloop.cli.train.launch import Launch, launch_options
from hookloop.errors import CheckpointError, HookloopError
from hookloop.parallel.launched import report_iteration, restarts_so_far

if TYPE_CHECKING:
    from hookloop.config.tree import Config
    from hookloop.engine.hook import Hook
    from hookloop.outcome import Outcome


HOOK_FAILED = 3
"""The exit code of ``--strict`` for a run that completed without one of its hooks."""

strict_option = click.option(
    "--strict", is_flag=True, help=f"Exit with {HOOK_FAILED} if a hook failed and was left out."
)


@click.command("train", short_help="Train what a config describes.")
@config_and_overrides
@click.option("--run-dir", type=click.Path(path_type=Path), help="Directory of the run.")
@click.option("--resume", is_flag=True, help="Continue the run of this directory or config.")
@click.option(
    "--inject", metavar="FAULT", help="Plant a fault to be found later: flip:layer2.weight@120."
)
@launch_options
@strict_option
@reporting
def command(
    config: Path,
    overrides: tuple[str, ...],
    run_dir: Path | None,
    resume: bool,
    inject: str | None,
    strict: bool,
    launch: Launch,
) -> int:
    """Train what CONFIG describes: a YAML or Python file, or the directory of a run.

    Any value can be changed: optimizer.lr=0.01, hooks.ema=null, hooks.StopAfter.epochs=3. If there
    is test data, the trained model is tested at the end: its best checkpoint, if one is kept.
    """
    from hookloop.config.load import load

    launch.check()
    loaded = load(config, overrides)
    if resume and run_dir is None:
        run_dir = run_directory_of(config) or _run_to_resume(loaded)
    if launch.ranks is not None:
        verb = ["train", str(config), *overrides, *["--resume"] * resume, *["--strict"] * strict]
        verb += ["--inject", inject] if inject is not None else []
        with (
            launch.on_ranks(loaded) as run_on_ranks,
            directory_for_ranks(loaded, run_dir, launch) as home,
        ):
            return run_on_ranks([*verb, *(("--run-dir", str(home)) if home is not None else ())])
    # None and not False: without the option, the config decides.
    return train(loaded, run_dir, resume=True if resume else None, strict=strict, inject=inject)


def train(
    config: Config,
    run_dir: Path | None,
    *,
    resume: bool | str | None,
    strict: bool = False,
    change: Sequence[str] = (),
    inject: str | None = None,
) -> int:
    """Train a config, report how it ended, and return the exit code.

    Args:
        config: The config to train.
        run_dir: The run's directory, instead of the one in the config.
        resume: As for `Trainer`.
        strict: Whether a hook that failed and was left out changes the exit code.
        change: Keys of the config that differ on purpose from the run to continue.
        inject: A fault to plant, of which the config says nothing.
    """
    # Imported only now, so that a file that cannot be read is rejected without waiting for torch.
    from hookloop.config.build import build
    from hookloop.outcome import Interrupted
    from hookloop.trainer.intended_changes import Resume

    if restarts_so_far():  # Also if the run was killed before it had anything to continue.
        resume = "auto"
    wanted = Resume(resume, change) if change and resume else resume
    edit, hooks = _planted(inject)
    trainer = build(config, run_dir=run_dir, resume=wanted, hooks=hooks)
    is_main = trainer.run.world.is_main
    try:
        outcome = trainer.train()
    except Interrupted as interruption:
        if is_main:
            _show_outcome(interruption.outcome)
            print_text(f"hookloop resume {interruption.outcome.run_dir} continues it.")
        return interruption.outcome.exit_code
    except BaseException:
        if trainer.run.outcome.run_dir is not None:
            set_result(outcome_record(trainer.run.outcome))
        report_iteration(trainer.run.progress.iter)
        raise
    metrics = dict(outcome.metrics)
    # A test gives the run an outcome of its own, so that of the training is kept aside.
    if trainer.run._internals.test_data:
        metrics |= trainer.test(checkpoint="best" if outcome.best else None)
        if is_main and outcome.best is not None:
            print_text(f"tested {outcome.best}")
        failed = dict.fromkeys((*outcome.disabled, *trainer.run.outcome.disabled))
        outcome = replace(outcome, disabled=tuple(failed))
    if is_main:
        _show_outcome(outcome, metrics)
        if edit and outcome.run_dir is not None:
            from hookloop.short_runs.edits import edit_run

            print_text(f"edited: {edit_run(outcome.run_dir, edit)}.")
    return outcome.exit_code or (HOOK_FAILED if strict and outcome.disabled else 0)


def _planted(inject: str | None) -> tuple[str, list[Hook]]:
    """Return what to edit after the training, and the hooks that plant a fault in it."""
    if inject is None:
        return "", []
    from hookloop.hooks.guarding.plant_fault import Fault, PlantFault

    fault = Fault.parse(inject)
    return (fault.target, []) if fault.kind == "edit" else ("", [PlantFault(inject)])


@contextmanager
def directory_for_ranks(
    config: Config, run_dir: Path | None, launch: Launch
) -> Iterator[Path | None]:
    """Choose the run's directory before the ranks start: a restart has to find it again.

    One that is named after the time is made here, and removed if nothing was written to it.
    """
    from hookloop.runs.layout import TIME, RunDir, default_path

    name, written = config.tree.get("name"), config.tree.get("run_dir")
    wanted = run_dir or Path(str(written or default_path(str(name) if name else None)))
    if TIME not in wanted.name:
        yield wanted
    elif config.tree.get("resume"):
        yield None  # It names the run, or is rejected with the reason.
    elif launch.nodes > 1:
        if launch.restarts:
            raise HookloopError(
                "--restarts on several nodes needs --run-dir, a directory that all of them see: "
                "one that is named after the time would not be found again."
            )
        yield None
    else:
        home = RunDir.create(wanted).path
        try:
            yield home
        finally:
            with suppress(OSError):
                home.rmdir()


def outcome_record(
    outcome: Outcome, metrics: Mapping[str, float] | None = None
) -> dict[str, object]:
    """Return an outcome in the form of ``--json``."""
    return {
        "status": outcome.status,
        "reason": outcome.reason,
        "run_dir": str(outcome.run_dir) if outcome.run_dir is not None else None,
        "metrics": dict(metrics or outcome.metrics),
        "problem": outcome.problem,
        "disabled": [asdict(hook) for hook in outcome.disabled],
    }


def _show_outcome(outcome: Outcome, metrics: Mapping[str, float] | None = None) -> None:
    from hookloop.hooks.showing._wording import is_detail

    set_result(outcome_record(outcome, metrics))
    shown = metrics or outcome.metrics
    # The mean of the last epoch, as in the line of that epoch, if one was completed.
    loss = "train_epoch/loss" if "train_epoch/loss" in shown else "train/loss"
    numbers = "  ".join(
        f"{name} {value:.4g}"
        for name, value in shown.items()
        if name == loss or not (name.startswith(("train/", "train_epoch/")) or is_detail(name))
    )
    print_text(f"{outcome}: {outcome.run_dir}  {numbers}".rstrip())
    if outcome.problem:
        print_error(outcome.problem)


def _run_to_resume(config: Config) -> Path | None:
    """Find the newest run of the same config, unless the config itself names a directory."""
    from hookloop.config.dump import effective
    from hookloop.config.load import load
    from hookloop.runs.layout import RunDir, default_path
    from hookloop.runs.policy import NOT_COMPARED
    from hookloop.runs.reader import list_runs

    if config.tree.get("run_dir") is not None:
        return None
    # Files of other people may be among the runs: a Python config there is never executed.
    wanted = effective(config)
    # The list starts with the oldest run.
    for run in reversed(list_runs(default_path().parent)):
        if not RunDir(run.path).config_file.is_file():
            continue
        try:
            written = effective(load(run.path, only_data=True))
        except (HookloopError, OSError, ValueError) as error:  # Another run may match.
            print_error(f"'{run.path}' is skipped: {error}")
            continue
        if all(
            wanted.get(key) == written.get(key) for key in {*wanted, *written} - set(NOT_COMPARED)
        ):
            return run.path
    raise CheckpointError(
        f"there is no run of this config under '{default_path().parent}' to resume: "
        "name it with --run-dir."
    )
