"""Writers: each sends records to one backend. They know nothing of hooks.

Subclass `Writer` for a backend of your own; `hookloop.hooks.WriteTo` sends it the numbers of a run.
The names below are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookloop.arguments import missing_name
from hookloop.lazy import load_name

if TYPE_CHECKING:
    from hookloop.writers.base import Multi, Writer
    from hookloop.writers.clearml import ClearML
    from hookloop.writers.comet import Comet
    from hookloop.writers.csv import Csv
    from hookloop.writers.jsonl import JsonLines
    from hookloop.writers.media import MediaFiles
    from hookloop.writers.mlflow import MLflow
    from hookloop.writers.pixels import draw_figure, encode_png, to_pixels
    from hookloop.writers.records import (
        Config,
        Graph,
        Histogram,
        Image,
        Record,
        Scalars,
        Table,
        Text,
    )
    from hookloop.writers.tensorboard import TensorBoard
    from hookloop.writers.trackio import Trackio
    from hookloop.writers.wandb import Wandb

__all__ = [
    "ClearML",
    "Comet",
    "Config",
    "Csv",
    "Graph",
    "Histogram",
    "Image",
    "JsonLines",
    "MLflow",
    "MediaFiles",
    "Multi",
    "Record",
    "Scalars",
    "Table",
    "TensorBoard",
    "Text",
    "Trackio",
    "Wandb",
    "Writer",
    "draw_figure",
    "encode_png",
    "to_pixels",
]

_MODULES = {
    "ClearML": "clearml",
    "Comet": "comet",
    "Csv": "csv",
    "JsonLines": "jsonl",
    "MLflow": "mlflow",
    "MediaFiles": "media",
    "Multi": "base",
    "TensorBoard": "tensorboard",
    "Trackio": "trackio",
    "Wandb": "wandb",
    "Writer": "base",
    "draw_figure": "pixels",
    "encode_png": "pixels",
    "to_pixels": "pixels",
}  # All other names are in `records`.


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise missing_name(__name__, name, None, __all__)
    return load_name(globals(), f"hookloop.writers.{_MODULES.get(name, 'records')}", name)


def __dir__() -> list[str]:
    return __all__
