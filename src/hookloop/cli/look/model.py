"""``hookloop model``: show the modules of a model, with shapes and parameters."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hookloop.cli.shared.arguments import config_and_overrides
from hookloop.cli.shared.output import set_result
from hookloop.cli.shared.report import print_text, reporting
from hookloop.cli.train.check import build_without_run
from hookloop.short_runs.scratch import scratch_directory

if TYPE_CHECKING:
    from hookloop.trainer.model_table import ModelTable
    from hookloop.trainer.trainer import Trainer


@click.command("model", short_help="Show the modules of a model, with shapes and parameters.")
@config_and_overrides
@click.option(
    "--depth",
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    help="Levels of modules to show.",
)
@reporting
def command(config: Path, overrides: tuple[str, ...], depth: int) -> int:
    """Show the modules of CONFIG's model: outputs for one batch, parameters, and what trains.

    The first batch of the training data is read, if there is any. Nothing is trained or written.
    """
    from hookloop.config.load import load

    loaded = load(config, overrides)
    with scratch_directory("model") as scratch:
        table = _describe(build_without_run(loaded, scratch))
    share = table.trainable / table.parameters if table.parameters else None
    numbers = {"parameters": table.parameters, "trainable": table.trainable, "trains": share}
    set_result({**numbers, "modules": [asdict(row) for row in table.rows]})
    print_text(str(table.to_depth(depth)))
    hidden = len(table.rows) - len(table.to_depth(depth).rows)
    more = f"  {hidden} modules are deeper: --depth {max(row.depth for row in table.rows)}."
    total = f"{table.parameters:,} parameters, {table.trainable:,} of them train."
    print_text(f"\n{total}{more if hidden else ''}")
    return 0


def _describe(trainer: Trainer) -> ModelTable:
    """Describe the model, with the first batch if there is one."""
    from hookloop.data.transfer import make_transfer
    from hookloop.trainer.model_table import describe_model

    run = trainer.run
    if run.train_data is None:
        return describe_model(run.model)
    batch = run.train_data.first_batch()
    move = make_transfer(run.device)
    run.batch, run.phase = batch if move is None else move(batch), "val"
    updates = trainer._updates  # They know how a batch goes through the model.
    return describe_model(
        run.model, run.batch, forward=lambda _: [update.forward(run) for update in updates]
    )
