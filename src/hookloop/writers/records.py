"""The records that writers accept: numbers, images, text, histograms, tables, config and graph.

A record holds its own copy of its data, so that it can wait for its writer while the training
continues. ``step`` is the number of completed iterations; `Run.emit` fills it in.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Self, cast

import numpy as np

from hookloop.runs.csv_cells import safe_row
from hookloop.secret import redact
from hookloop.writers.pixels import to_pixels

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import nn


class _Record:
    """The base of all records."""

    def at(self, step: int) -> Self:
        """Return the record with this step, unless it has a step already or needs none."""
        # `Config` and `Graph` have no field for it.
        if getattr(self, "step", step) is not None:
            return self
        return cast("Self", replace(cast("Text", self), step=step))


@dataclass(frozen=True)
class Scalars(_Record):
    """Numbers of one iteration.

    Attributes:
        values: The numbers by full name, such as ``train/loss``.
        step: Completed iterations.
        epoch: Completed epochs.
        phase: The phase that measured them: ``train``, ``val`` or ``test``.
        span: What they are means over: ``iter`` for recent iterations, ``epoch`` for an epoch.
        time: Seconds since 1970.
    """

    values: Mapping[str, float]
    step: int
    epoch: int = 0
    phase: str = "train"
    span: str = "iter"
    time: float = field(default_factory=time)


@dataclass(frozen=True)
class Image(_Record):
    """An image: a tensor (channels first), an array (channels last) or a matplotlib figure.

    Attributes:
        name: For example ``val/confusion``.
        pixels: The image in any of these forms, kept as bytes of shape (height, width, channels).
        step: Completed iterations.
        caption: A description.
        file: The file to which the hook has saved the image already, if any.

    >>> Image("val/sample", np.zeros((4, 6))).pixels.shape
    (4, 6, 1)
    """

    name: str
    pixels: NDArray[np.uint8]
    step: int | None = None
    caption: str = ""
    file: Path | None = None

    def __post_init__(self) -> None:
        # The class is frozen: a record must not change while it waits for its writer.
        object.__setattr__(self, "pixels", to_pixels(self.pixels))


@dataclass(frozen=True)
class Text(_Record):
    """Text, shown as Markdown by backends that can."""

    name: str
    text: str
    step: int | None = None

    def __post_init__(self) -> None:
        # Here, so that no backend can be sent a secret, whichever hook made the text.
        object.__setattr__(self, "text", redact(self.text))


@dataclass(frozen=True)
class Histogram(_Record):
    """The distribution of values; values that are not finite are left out.

    >>> Histogram("weights", [1.0, float("nan"), 3.0]).values
    array([1., 3.], dtype=float32)
    """

    name: str
    values: NDArray[np.float32]
    step: int | None = None

    def __post_init__(self) -> None:
        values: object = self.values
        if hasattr(values, "detach"):  # A tensor, which may be a bfloat16 that numpy does not have.
            values = values.detach().float().cpu().numpy()
        flat = np.asarray(values).astype(np.float32).ravel()  # Always a copy.
        object.__setattr__(self, "values", flat[np.isfinite(flat)])


@dataclass(frozen=True)
class Table(_Record):
    """Rows under named columns.

    Attributes:
        name: For example ``val/confusion``.
        columns: The names of the columns.
        rows: Numbers and text.
        step: Completed iterations.
        file: The file to which the hook has saved the table already, if any.
    """

    name: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    step: int | None = None
    file: Path | None = None

    def to_csv(self) -> str:
        """Return the table as CSV, in which no cell is a formula.

        >>> print(Table("t", ["a", "b"], [[1, "x,y"]]).to_csv(), end="")
        a,b
        1,"x,y"
        """
        text = io.StringIO()
        rows = [safe_row(row) for row in (self.columns, *self.rows)]
        csv.writer(text, lineterminator="\n").writerows(rows)
        return text.getvalue()

    def to_markdown(self) -> str:
        """Return the table as Markdown.

        >>> print(Table("t", ["a", "b"], [[1, 2]]).to_markdown())
        | a | b |
        |---|---|
        | 1 | 2 |
        """
        lines = [" | ".join(str(cell) for cell in line) for line in (self.columns, *self.rows)]
        texts = [f"| {line} |" for line in lines]
        texts.insert(1, "|" + "---|" * len(self.columns))
        return "\n".join(texts)


@dataclass(frozen=True)
class Config(_Record):
    """The config of the run; backends show it as hyper-parameters."""

    values: Mapping[str, object]

    def flat(self) -> dict[str, object]:
        """Return the settings by dotted path.

        >>> Config({"optimizer": {"lr": 0.1}, "sizes": [8, 16]}).flat()
        {'optimizer.lr': 0.1, 'sizes.0': 8, 'sizes.1': 16}
        """
        return _flat(self.values)


@dataclass(frozen=True)
class Graph(_Record):
    """A model with example inputs; a writer runs the model to draw its graph."""

    model: nn.Module
    inputs: object


Record = Scalars | Image | Text | Histogram | Table | Config | Graph


def _flat(value: object, path: str = "") -> dict[str, object]:
    inner: Mapping[object, object]
    if isinstance(value, Mapping):
        inner = value
    elif isinstance(value, list | tuple):
        inner = dict(enumerate(value))
    else:
        return {path: value}
    # An empty mapping or list leaves no entry: there is no value to show.
    flat: dict[str, object] = {}
    for key, item in inner.items():
        flat |= _flat(item, f"{path}.{key}" if path else str(key))
    return flat
