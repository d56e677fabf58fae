"""``hookloop resume``: continue a run with its own config."""

from __future__ import annotations

from pathlib import Path

import click

from hookloop.cli.look.completing import complete_override, complete_run
from hookloop.cli.shared.arguments import aliases
from hookloop.cli.shared.report import reporting
from hookloop.cli.train.launch import Launch, launch_options
from hookloop.cli.train.train import strict_option, train
from hookloop.errors import CheckpointError


@click.command("resume", short_help="Continue a run.")
@aliases
@click.argument("run", type=click.Path(path_type=Path), shell_complete=complete_run)
@click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...", shell_complete=complete_override)
@click.option(
    "--config",
    "config",
    type=click.Path(path_type=Path),
    help="Your own config, so that nothing but weights and state is taken from RUN.",
)
@click.option(
    "--checkpoint",
    metavar="PATH_OR_URL",
    help="Continue from this checkpoint; needed if RUN names one in a store that no hook uses.",
)
@click.option(
    "--change",
    is_flag=True,
    help="The values are changed on purpose, settings of the optimizer included.",
)
@launch_options
@strict_option
@reporting
def command(
    run: Path,
    overrides: tuple[str, ...],
    config: Path | None,
    checkpoint: str | None,
    change: bool,
    strict: bool,
    launch: Launch,
) -> int:
    """Continue RUN, the directory of a run, from its newest complete checkpoint.

    The run's own config is used. It is code: what it names is imported and built. For somebody
    else's directory, give --config. Values can be changed: max_epochs=40 makes the run longer, and
    schedules with it. Settings of the optimizer, such as optimizer.lr=1e-4, need --change; the
    change is recorded. RUN can also be a single checkpoint in the directory of a run.
    """
    from hookloop.checkpoint.store.storage import is_checkpoint_directory
    from hookloop.config.load import load
    from hookloop.runs.checkpoint_names import is_checkpoint_name
    from hookloop.runs.layout import RunDir

    if change and not overrides:
        raise click.UsageError("--change needs what to change: optimizer.lr=1e-4 --change.")
    is_file = is_checkpoint_name(run.name) and run.is_file()
    home = run.parent if is_file or is_checkpoint_directory(run) else run
    if config is None and not RunDir(home).config_file.is_file():
        raise CheckpointError(
            f"'{run}' is not a run to resume: give the directory of a run, with its config.yaml. "
            "A run that a script made is resumed by the script, with Trainer(resume=...)."
        )
    launch.check()
    # With --config, nothing in RUN is run as code: the directory may be somebody else's.
    loaded = load(config or home, overrides)
    named = checkpoint or (None if home == run else str(run))
    if launch.ranks is not None:
        if named and launch.restarts:
            raise click.UsageError(
                "--restarts continues from the newest checkpoint, so that none can be named."
            )
        own = {"--config": config, "--checkpoint": checkpoint}
        chosen = [part for name, value in own.items() if value for part in (name, str(value))]
        flags = [*["--change"] * change, *["--strict"] * strict]
        with launch.on_ranks(loaded) as run_on_ranks:
            return run_on_ranks(["resume", str(run), *overrides, *chosen, *flags])
    changed = [text.partition("=")[0].strip() for text in overrides] if change else []
    return train(loaded, home, resume=named or True, strict=strict, change=changed)
