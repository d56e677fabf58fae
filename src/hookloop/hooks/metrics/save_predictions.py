"""`SavePredictions`: save the predictions for every sample."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from hookloop.errors import HookError, MetricError, nearest
from hookloop.hooks.metrics.accumulate_variables import AccumulateVariables, Part, to_array
from hookloop.hooks.showing._figures import file_name, moment_label
from hookloop.runs.files import drafted, make_folder, write_text
from hookloop.writers.base import require
from hookloop.writers.predictions import column_names
from hookloop.writers.records import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hookloop.engine.run import Run

Format = Literal["csv", "parquet", "npz"]
FORMATS: tuple[str, ...] = get_args(Format)
Columns = dict[str, list[object]]

_log = logging.getLogger("hookloop")


class SavePredictions(AccumulateVariables):
    """Save variables of every sample: predictions, scores, sequences.

    Files are ``predictions/<stream>_epoch_<n>.<format>``, one per stream and epoch, or
    ``<stream>_iter_<n>`` within an epoch. A table has a row per sample; a variable with several
    numbers per sample has a column for each. With ``pad_mask``, or ``sequences=True``, it has a row
    per position of each sequence instead. NPZ keeps arrays as they are.

    Args:
        variables: Names of the variables, as in `AccumulateVariables`: ``output``, ``targets``, or
            entries of the batch or the output.
        format: ``"csv"``, ``"parquet"`` or ``"npz"``.
        id_variable: The variable that identifies a sample; by default its number.
        class_names: Names for the columns of scores, instead of numbers.
        pad_mask: A variable that is true where a sequence has an entry.
        sequences: Whether the second dimension is the position in a sequence.
        streams: Where: ``"train"``, ``"val"``, ``"test"`` or names of single streams.

    Example:
        >>> SavePredictions(["output", "targets"], format="npz").streams
        ('test',)
    """

    draws_random_numbers = False

    def __init__(
        self,
        variables: Sequence[str] = ("output", "targets"),
        format: Format = "csv",
        *,
        id_variable: str | None = None,
        class_names: Sequence[str] | None = None,
        pad_mask: str | None = None,
        sequences: bool = False,
        streams: Sequence[str] = ("test",),
    ) -> None:
        if format not in FORMATS:
            hint = nearest(str(format), FORMATS)
            raise HookError(f"SavePredictions: format={format!r}: write csv, parquet or npz.{hint}")
        if format == "parquet":
            require("pyarrow", extra="parquet", who="SavePredictions(format='parquet')")
        # Collected like the variables, but not shown as columns of their own.
        extra = [name for name in (id_variable, pad_mask) if name is not None]
        super().__init__([*variables, *(name for name in extra if name not in variables)], streams)
        self.shown = tuple(variables)
        self.format = format
        self.id_variable = id_variable
        self.class_names = None if class_names is None else tuple(map(str, class_names))
        self.pad_mask = pad_mask
        self.sequences = sequences or pad_mask is not None

    def summarize(self, run: Run, stream: str, values: Mapping[str, list[Part]]) -> None:
        if not run.world.is_main:
            return
        name = file_name(stream, moment_label(run))
        file = run.dir / "predictions" / f"{name}.{self.format}"
        make_folder(file.parent, run.dir)
        if self.format == "npz":  # No table, so no labels and no rows per position.
            arrays = {key: _joined(kept) for key, kept in values.items()}
            with drafted(file) as draft:
                np.savez_compressed(draft, **arrays)  # type: ignore[arg-type]
            return
        rows = self._positions(values) if self.sequences else self._samples(values)
        columns = _by_column(rows)
        self._check_names(columns)
        if self.format == "parquet":
            with drafted(file) as draft:
                _write_parquet(draft, columns)
        else:
            table = Table("", list(columns), list(zip(*columns.values(), strict=True)))
            write_text(file, table.to_csv())

    def _check_names(self, columns: Columns) -> None:
        names = self.class_names
        if names and not any(column.endswith(f"_{names[0]}") for column in columns):
            _log.warning(
                "SavePredictions: class_names has %d names, but none of %s has as many numbers: "
                "the columns are numbered.", len(names), ", ".join(self.shown),
            )  # fmt: skip

    def _samples(self, values: Mapping[str, list[Part]]) -> Iterator[dict[str, object]]:
        """Yield a row per sample."""
        for number, sample in self._each(values):
            row: dict[str, object] = {"id": sample.get(self.id_variable or "", number)}
            for name in self.shown:
                numbers = np.ravel(np.asarray(sample[name]))
                labels = self._labels(name, numbers)
                row |= dict(zip(labels, numbers.tolist(), strict=True))
            yield row

    def _positions(self, values: Mapping[str, list[Part]]) -> Iterator[dict[str, object]]:
        """Yield a row per position of each sequence."""
        for number, sample in self._each(values):
            identity = sample.get(self.id_variable or "", number)
            length = max(len(np.atleast_1d(np.asarray(sample[name]))) for name in self.shown)
            mask = sample[self.pad_mask] if self.pad_mask else np.ones(length)
            for index in np.flatnonzero(np.asarray(mask)):
                # Positions keep their index in the padded sequence, so gaps in the mask show.
                row: dict[str, object] = {"id": identity, "index": int(index)}
                for name in self.shown:
                    numbers = np.ravel(np.asarray(sample[name])[index])
                    labels = self._labels(name, numbers)
                    row |= dict(zip(labels, numbers.tolist(), strict=True))
                yield row

    def _each(self, values: Mapping[str, list[Part]]) -> Iterator[tuple[int, dict[str, object]]]:
        number = 0  # Counted over the batches: the number of a sample in its stream.
        batches = zip(*(values[name] for name in self.variables), strict=True)
        for batch in batches:
            arrays = [to_array(part) for part in batch]
            sizes = {name: len(array) for name, array in zip(self.variables, arrays, strict=True)}
            if len(set(sizes.values())) > 1:
                listed = ", ".join(f"{name}: {size}" for name, size in sizes.items())
                raise MetricError(
                    f"{self.name}: the variables have different numbers of samples ({listed})."
                )
            for sample in zip(*arrays, strict=True):
                # Plain Python numbers and strings, as CSV and Parquet take them.
                plain = (
                    item.item() if np.ndim(item) == 0 else item for item in map(_plain, sample)
                )
                yield number, dict(zip(self.variables, plain, strict=True))
                number += 1

    def _labels(self, name: str, numbers: NDArray[np.generic]) -> list[str]:
        return column_names(name, len(numbers), self.class_names)


def _plain(item: object) -> NDArray[np.generic]:
    return np.asarray(item)


def _joined(parts: list[Part]) -> NDArray[np.generic]:
    arrays = [to_array(part) for part in parts]
    longest = max((array.shape[1] for array in arrays if array.ndim > 1), default=0)
    if any(array.ndim > 1 and array.shape[1] != longest for array in arrays):
        # Batches padded to different lengths are padded to the longest.
        arrays = [
            np.pad(array, [(0, 0), (0, longest - array.shape[1]), *[(0, 0)] * (array.ndim - 2)])
            for array in arrays
        ]
    return np.concatenate(arrays)


def _by_column(rows: Iterator[dict[str, object]]) -> Columns:
    listed = list(rows)
    # Batches of different lengths have different columns: missing cells stay empty.
    names = dict.fromkeys(name for row in listed for name in row)
    return {name: [row.get(name) for row in listed] for name in names}


def _write_parquet(file: Path, columns: Columns) -> None:
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table(columns), file)
