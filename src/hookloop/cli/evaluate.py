"""What ``test`` and ``validate`` have in common: weights, one evaluation, its numbers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from hookloop.cli.arguments import run_directory_of

if TYPE_CHECKING:
    from hookloop.config.tree import Config


def evaluate(
    phase: Literal["val", "test"], config: Path, overrides: tuple[str, ...], checkpoint: Path | None
) -> int:
    """Evaluate a checkpoint with the data of a config and print the metrics.

    Of a run directory, the newest checkpoint is taken unless another is given, and the numbers are
    added to the run's records; the evaluation of a config file is a run of its own.
    """
    from hookloop.config.load import load

    loaded = load(config, overrides)
    from hookloop.config.build import build

    home = run_directory_of(config)
    chosen = _choose(loaded, home, checkpoint)
    if chosen is None and loaded.tree.get("load_from") is None:
        click.echo("warning: no checkpoint is given, so the weights are untrained.", err=True)
    if chosen is not None:
        loaded.tree["load_from"] = chosen
    trainer = build(loaded, resume=str(home) if home else None)
    metrics = trainer.test() if phase == "test" else trainer.validate()
    numbers = "  ".join(f"{phase}/{name} {value:.4g}" for name, value in metrics.items())
    click.echo(f"{chosen or loaded.path.name}  {numbers}")
    return 0


def _choose(config: Config, home: Path | None, checkpoint: Path | None) -> str | None:
    """Return the file to load: the one that is given, or the newest of the run."""
    from hookloop.runs.layout import RunDir

    if checkpoint is not None and checkpoint.is_dir():
        home, checkpoint = checkpoint, None
    if checkpoint is not None:
        return str(checkpoint)
    if home is None or config.tree.get("load_from") is not None:
        return None
    return RunDir(home).last_checkpoint
