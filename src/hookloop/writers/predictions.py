"""Files of predictions, written batch by batch: CSV, Parquet, NPZ. The memory stays constant."""

from __future__ import annotations

import csv
import logging
import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np

from hookloop.errors import DataError, nearest
from hookloop.runs.csv_cells import safe_row
from hookloop.runs.files import drafted
from hookloop.writers.base import require

if TYPE_CHECKING:
    from numpy.typing import NDArray

_log = logging.getLogger("hookloop")

Arrays = Mapping[str, "NDArray[np.generic]"]
"""What a batch gives: arrays with a row per sample."""


class PredictionFile:
    """A file of predictions that is being written.

    Args:
        path: The file, for messages.
        write: Adds the arrays of a batch to it.
    """

    def __init__(self, path: Path, write: Callable[[Arrays], None]) -> None:
        self._path = path
        self._write = write
        self._shapes: dict[str, tuple[int, ...]] = {}
        self.batches = 0
        self.is_whole = False
        """Whether all batches are there: only then the file is kept."""

    def add(self, arrays: Arrays) -> None:
        """Add a batch, which must have the columns of the first one."""
        shapes = {name: array.shape[1:] for name, array in arrays.items()}
        self._shapes = self._shapes if self.batches else shapes
        self.batches += 1
        if shapes != self._shapes:
            raise DataError(
                f"The output of batch {self.batches} has another form than the first, so that one "
                f"table cannot hold both: {_show(shapes)} instead of {_show(self._shapes)}. "
                "Without to=, predict() returns them in a list."
            )
        with _reporting_failures(self._path):
            self._write(arrays)


def check_file(path: Path) -> None:
    """Reject a file that cannot be written, before anything is computed."""
    if path.suffix not in FORMATS:
        raise DataError(
            f"to='{path}': the file must end in {', '.join(FORMATS)}."
            f"{nearest(path.suffix, FORMATS)}"
        )
    if not path.parent.is_dir():
        raise DataError(f"to='{path}': there is no directory '{path.parent}'.")
    if path.suffix == ".parquet":
        require("pyarrow", extra="parquet", who=f"to='{path}'")


@contextmanager
def writing(path: Path) -> Iterator[PredictionFile]:
    """Open a file for predictions; it replaces ``path`` at the end, if it is whole by then."""
    check_file(path)
    try:
        with drafted(path) as draft, ExitStack() as stack:
            with _reporting_failures(path):
                write = stack.enter_context(FORMATS[path.suffix](draft))
            file = PredictionFile(path, write)
            yield file
            if not file.is_whole:
                raise _NotWhole
            with _reporting_failures(path):
                stack.close()
    except _NotWhole:
        _log.warning("The prediction ended early, so '%s' was not written.", path)


class _NotWhole(Exception):
    """Raised to discard a draft."""


@contextmanager
def _reporting_failures(path: Path) -> Iterator[None]:
    """Name the file if writing it fails. An error of the model or the data does not pass here."""
    try:
        yield
    except OSError as error:
        raise DataError(
            f"The predictions cannot be written to '{path}': {error.strerror or error}. The file "
            "is left as it was before."
        ) from error


def column_names(name: str, count: int, class_names: Sequence[str] | None = None) -> list[str]:
    """Name the columns of a variable with some numbers per sample.

    >>> column_names("output", 1), column_names("output", 2), column_names("output", 2, ["a", "b"])
    (['output'], ['output_0', 'output_1'], ['output_a', 'output_b'])
    """
    if count == 1:
        return [name]
    if class_names is not None and len(class_names) == count:
        return [f"{name}_{class_name}" for class_name in class_names]
    return [f"{name}_{index}" for index in range(count)]


def _columns(arrays: Arrays, first: int) -> dict[str, NDArray[np.generic]]:
    """Return a column per number of a sample, and one with the number of the sample itself."""
    rows = len(next(iter(arrays.values())))
    columns: dict[str, NDArray[np.generic]] = {"id": np.arange(first, first + rows)}
    for name, array in arrays.items():
        flat = array.reshape(rows, -1)
        columns |= dict(zip(column_names(name, flat.shape[1]), flat.T, strict=True))
    return columns


@contextmanager
def _csv(path: Path) -> Iterator[Callable[[Arrays], None]]:
    with path.open("x", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        done = 0

        def write(arrays: Arrays) -> None:
            nonlocal done
            columns = _columns(arrays, done)
            if not done:
                rows.writerow(safe_row(columns))
            done += len(columns["id"])
            lists = [column.tolist() for column in columns.values()]
            texts = [
                safe_row(one) if column.dtype.kind in "OSUT" else one
                for one, column in zip(lists, columns.values(), strict=True)
            ]
            rows.writerows(zip(*texts, strict=True))

        yield write


@contextmanager
def _parquet(path: Path) -> Iterator[Callable[[Arrays], None]]:
    import pyarrow
    from pyarrow import parquet

    with ExitStack() as stack:
        writer: Any = None
        done = 0

        def write(arrays: Arrays) -> None:
            nonlocal writer, done
            columns = _columns(arrays, done)
            try:
                table = pyarrow.table(
                    {name: np.ascontiguousarray(one) for name, one in columns.items()}
                )
                if writer is not None:  # Whole numbers, say, where the first batch had others.
                    table = table.cast(writer.schema)
            except pyarrow.ArrowException as error:
                kinds = ", ".join(
                    f"{name} {np.asarray(one).dtype}" for name, one in columns.items()
                )
                raise DataError(
                    f"A Parquet file cannot hold these columns ({kinds}): {error}. Write "
                    "another kind of file, or return the same type for each batch."
                ) from error
            done += len(table)
            if writer is None:
                writer = stack.enter_context(parquet.ParquetWriter(path, table.schema))
            writer.write_table(table)

        yield write


@contextmanager
def _npz(path: Path) -> Iterator[Callable[[Arrays], None]]:
    with ExitStack() as stack:
        # An archive has one array after the other, so each is collected in a file of its own.
        parts: dict[str, tuple[IO[bytes], NDArray[np.generic]]] = {}
        rows = 0

        def write(arrays: Arrays) -> None:
            nonlocal rows
            rows += len(next(iter(arrays.values())))
            for name, array in arrays.items():
                if array.dtype.kind not in "biufc":
                    raise DataError(
                        f"'{name}' is text, which an NPZ file does not hold: write CSV or Parquet."
                    )
                if name not in parts:
                    parts[name] = stack.enter_context(TemporaryFile(dir=path.parent)), array[:0]
                kind = parts[name][1].dtype
                if not np.can_cast(array.dtype, kind):
                    raise DataError(
                        f"'{name}' is {array.dtype} in a later batch and {kind} in the first, so "
                        "that one array cannot hold both: return the same type for each batch."
                    )
                parts[name][0].write(np.ascontiguousarray(array, kind).tobytes())

        yield write
        with zipfile.ZipFile(path, "x", zipfile.ZIP_DEFLATED) as archive:
            for name, (part, empty) in parts.items():
                part.seek(0)
                with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                    np.lib.format.write_array_header_1_0(
                        cast("Any", entry),
                        {
                            "descr": np.lib.format.dtype_to_descr(empty.dtype),
                            "fortran_order": False,
                            "shape": (rows, *empty.shape[1:]),
                        },
                    )
                    shutil.copyfileobj(part, entry)


FORMATS = {".csv": _csv, ".parquet": _parquet, ".npz": _npz}
"""How each kind of file is opened, by its ending."""


def _show(shapes: Mapping[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{name} {shape}" for name, shape in shapes.items())
