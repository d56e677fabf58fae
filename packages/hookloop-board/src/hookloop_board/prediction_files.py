"""Read tables of predictions: CSV, NPZ, and Parquet where pyarrow is installed."""

from __future__ import annotations

import csv
import io
import zipfile
from importlib.util import find_spec
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import numpy as np

from hookloop.runs import read_cell

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGEST = 100_000_000
"""Bytes of a file that are read, and of what is packed in it."""

MOST_COLUMNS = 200

Table = tuple[list[str], list[list[str]]]


def is_table(name: str) -> bool:
    """Return whether a file may be a table of predictions, by its name."""
    return PurePosixPath(name).suffix in _READERS


def read_table(name: str, data: bytes) -> Table:
    """Return the names of the columns, and the rows as text.

    Raises:
        ValueError: If it is not such a table, or too large.
    """
    return _READERS[PurePosixPath(name).suffix](data)


def _read_csv(data: bytes) -> Table:
    try:
        lines = csv.reader(io.StringIO(data.decode("utf-8", "replace")))
        found = [list(map(read_cell, row[:MOST_COLUMNS])) for row in lines if row]
    except csv.Error as error:
        raise ValueError(f"the file is not a table: {error}") from error
    return (found[0], found[1:]) if found else ([], [])


def _read_npz(data: bytes) -> Table:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            _limit(sum(one.file_size for one in packed.infolist()))
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            found = {name: np.asarray(arrays[name]) for name in arrays.files[:MOST_COLUMNS]}
    except (OSError, EOFError, KeyError, zipfile.BadZipFile, NotImplementedError) as error:
        raise ValueError(f"the file is not a table: {error}") from error
    rows = max((len(one) for one in found.values() if one.ndim), default=0)
    columns: dict[str, list[str]] = {}
    for name, array in found.items():
        if array.ndim and len(array) == rows and rows:
            columns |= _columns(name, array.reshape(rows, -1))
    return _by_rows(columns)


def _columns(name: str, array: NDArray[np.generic]) -> dict[str, list[str]]:
    """Return a column per number of a sample, named as in the other formats."""
    width = min(array.shape[1], MOST_COLUMNS)
    names = [name] if array.shape[1] == 1 else [f"{name}_{number}" for number in range(width)]
    return {one: [str(value) for value in array[:, n].tolist()] for n, one in enumerate(names)}


def _read_parquet(data: bytes) -> Table:
    import pyarrow
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(pyarrow.BufferReader(data))
        meta = file.metadata
        groups = [meta.row_group(number) for number in range(meta.num_row_groups)]
        _limit(sum(one.total_byte_size for one in groups))
        table = file.read(columns=file.schema_arrow.names[:MOST_COLUMNS])
        columns = {
            name: [str(one) for one in table[name].to_pylist()] for name in table.schema.names
        }
    except (pyarrow.ArrowException, OSError, KeyError) as error:
        raise ValueError(f"the file is not a table: {error}") from error
    return _by_rows(columns)


def _limit(size: int) -> None:
    if size > LARGEST:
        raise ValueError(f"the file holds more than {LARGEST:,} bytes")


def _by_rows(columns: dict[str, list[str]]) -> Table:
    names = list(columns)[:MOST_COLUMNS]
    return names, [list(row) for row in zip(*(columns[name] for name in names), strict=True)]


_READERS = {".csv": _read_csv, ".npz": _read_npz}
if find_spec("pyarrow") is not None:
    _READERS[".parquet"] = _read_parquet
