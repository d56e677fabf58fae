"""``hookloop test``: evaluate a checkpoint on the test data."""

from __future__ import annotations

from pathlib import Path

import click

from hookloop.cli.publish.evaluate import evaluate
from hookloop.cli.shared.arguments import checkpoint_option, config_and_overrides
from hookloop.cli.shared.report import reporting


@click.command("test", short_help="Evaluate a checkpoint on the test data.")
@config_and_overrides
@checkpoint_option("by default the best of the run, or its newest if it keeps no best")
@click.option(
    "--run-dir",
    type=click.Path(path_type=Path),
    help="Directory in which to keep the evaluation of a config as a run of its own.",
)
@reporting
def command(
    config: Path, overrides: tuple[str, ...], checkpoint: Path | str | None, run_dir: Path | None
) -> int:
    """Evaluate on the test data of CONFIG, a config file or the directory of a run."""
    return evaluate("test", config, overrides, checkpoint, run_dir)
