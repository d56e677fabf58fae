"""``hookloop predict``: write what a trained model says about data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hookloop.cli.publish.evaluate import Opened, opened
from hookloop.cli.shared.arguments import aliases, checkpoint_option
from hookloop.cli.shared.output import set_result
from hookloop.cli.shared.report import print_text, reporting
from hookloop.errors import DataError

if TYPE_CHECKING:
    from hookloop.data.reading.input_file import InputFile


@click.command("predict", short_help="Write what a trained model says about data.")
@aliases
@click.argument("config", metavar="RUN", type=click.Path(path_type=Path))
@click.argument("data")
@click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...")
@checkpoint_option("by default the best of the run, or its newest if it keeps no best")
@click.option(
    "--to",
    type=click.Path(path_type=Path),
    help="File to write: .csv, .parquet or .npz; by default a CSV file in RUN/predictions.",
)
@click.option(
    "--batch-size",
    type=click.IntRange(min=1),
    default=64,
    show_default=True,
    help="Samples per batch, if DATA is a file.",
)
@reporting
def command(
    config: Path,
    data: str,
    overrides: tuple[str, ...],
    checkpoint: Path | str | None,
    to: Path | None,
    batch_size: int,
) -> int:
    """Write the outputs of the model of RUN, a run directory or a config, for DATA.

    DATA is a stream of the config (val_data, test_data, predict_data, or val_data.NAME where there
    are several), or a file of inputs: .csv and .parquet with a number per column, .npz with one
    array.
    """
    with opened(config, overrides, checkpoint, None, prefers_best=True) as prediction:
        inputs = _inputs(data, batch_size)
        to = _target(prediction, data) if to is None else to
        prediction.trainer.predict(inputs, to=to, checkpoint=prediction.checkpoint)
    if not prediction.trainer.run.world.is_main:
        return 0
    best = prediction.trainer.run.outcome.best if prediction.checkpoint else None
    used = prediction.label if best is None else best.path
    set_result({"predictions": str(to), "data": data, "checkpoint": used})
    print_text(f"{to}  by {prediction.label}")
    return 0


def _inputs(data: str, batch_size: int) -> InputFile | str:
    """Return a file of inputs, or the name of a stream."""
    from hookloop.data.reading.input_file import SUFFIXES, InputFile

    path = Path(data)
    return InputFile(path, batch_size) if path.is_file() or path.suffix in SUFFIXES else data


def _target(prediction: Opened, data: str) -> Path:
    from hookloop.runs.files import make_folder

    if prediction.home is None:
        raise DataError(f"--to is missing: where are the predictions of '{data}' to be written?")
    folder = make_folder(prediction.home / "predictions", prediction.home)
    return folder / f"{Path(data).stem if Path(data).is_file() else data}.csv"
