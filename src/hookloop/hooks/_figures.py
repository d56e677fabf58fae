"""Figures that hooks draw, and how they reach the run directory and the writers."""

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

    from hookloop.core.run import Run


def new_figure(width: float, height: float) -> Figure:
    """Make a figure outside of pyplot, which would keep it for ever."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=100, layout="constrained")


def require_plots(who: str) -> None:
    """Say at once when figures cannot be drawn."""
    require("matplotlib", extra="plots", who=who)
    # Now: a writer's thread could meet a module that the training is just importing.
    import matplotlib.figure  # noqa: F401


def show(run: Run, name: str, picture: object, file: Path, caption: str = "") -> None:
    """Write a picture to its file and hand it to the run's writers."""
    make_folder(file.parent, run.dir)
    image = Image(name, picture, caption=caption, file=file)  # type: ignore[arg-type]
    write_bytes(file, encode_png(image.pixels), durable=False)
    run.emit(image)


def moment(run: Run) -> str:
    """Say when something was drawn: after which epoch, or after which iteration within one.

    It becomes a part of file names, so that validations within an epoch do not overwrite another.
    """
    progress = run.progress
    return f"iter {progress.iter}" if progress.stage == "inside" else f"epoch {progress.epoch}"


def file_name(*words: object) -> str:
    """Join words into the name of a file.

    >>> file_name("val/clean", "epoch 3")
    'val_clean_epoch_3'
    """
    return "_".join(safe_name(str(word)).replace("/", "_") for word in words)
