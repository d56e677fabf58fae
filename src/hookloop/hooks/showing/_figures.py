"""Figures of `PlotLines`, `SaveConfusionMatrix` and `VisualizePredictions`: made, named and saved.

`SavePredictions` uses the file names too, so that all files of one evaluation are named alike.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hookloop.runs.files import make_folder, write_bytes
from hookloop.writers.base import require
from hookloop.writers.media import safe_name
from hookloop.writers.pixels import encode_png
from hookloop.writers.records import Image

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hookloop.engine.run import Run


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure that is freed when its last user drops it."""
    # pyplot.figure() would register the figure globally and keep it until the process ends.
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=100, layout="constrained")


def require_plots(who: str) -> None:
    """Raise if matplotlib is missing, before any training starts."""
    require("matplotlib", extra="plots", who=who)
    # Import it now. Later, a writer's thread could find the module half imported by the training.
    import matplotlib.figure  # noqa: F401


def save_picture(run: Run, name: str, picture: object, file: Path, caption: str = "") -> None:
    """Write a picture to its file and send it to the run's writers."""
    make_folder(file.parent, run.dir)
    image = Image(name, picture, caption=caption, file=file)  # type: ignore[arg-type]
    # No fsync: a resume does not need pictures, and there may be many per validation.
    write_bytes(file, encode_png(image.pixels), durable=False)
    run.emit(image)


def moment_label(run: Run) -> str:
    """Return the current moment as text: ``epoch 3``, or ``iter 40`` in the middle of an epoch.

    It is part of file names.
    """
    progress = run.progress
    # Several validations within one epoch would overwrite each other if they were named after it.
    return f"iter {progress.iter}" if progress.stage == "inside" else f"epoch {progress.epoch}"


def file_name(*words: object) -> str:
    """Join words into a file name without directories.

    >>> file_name("val/clean", "epoch 3")
    'val_clean_epoch_3'
    """
    return "_".join(safe_name(str(word)).replace("/", "_") for word in words)
