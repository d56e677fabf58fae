"""Inputs in a file, read in batches: CSV, Parquet, NPZ."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from hookloop.errors import DataError, nearest

if TYPE_CHECKING:
    from numpy.typing import NDArray

SUFFIXES = (".csv", ".parquet", ".npz")


class InputFile:
    """The batches of a file of inputs.

    A CSV or Parquet file has a sample per row and a number per column, which become tensors of
    float32; the first line of a CSV file may name the columns. An NPZ file has one array, whose
    first dimension is the samples; whole numbers stay whole.

    Args:
        path: The file.
        batch_size: Samples per batch.
    """

    def __init__(self, path: str | Path, batch_size: int = 64) -> None:
        self.path = Path(path)
        self.batch_size = batch_size
        if self.path.suffix not in SUFFIXES:
            raise DataError(
                f"'{path}' is not a file of inputs: it must end in {', '.join(SUFFIXES)}."
                f"{nearest(self.path.suffix, SUFFIXES)}"
            )
        if not self.path.is_file():
            raise DataError(f"There is no file '{path}'.")

    def __iter__(self) -> Iterator[Tensor]:
        if self.path.suffix == ".csv":
            return self._read_csv()
        return self._read_npz() if self.path.suffix == ".npz" else self._read_parquet()

    def _read_csv(self) -> Iterator[Tensor]:
        with self.path.open(newline="", encoding="utf-8") as file:
            rows = ((line, row) for line, row in enumerate(csv.reader(file), 1) if row)
            while some := list(islice(rows, self.batch_size)):
                if some[0][0] == 1 and not any(map(_is_number, some[0][1])):
                    some = some[1:]  # The names of the columns.
                if some:
                    yield torch.tensor([self._numbers(*row) for row in some])

    def _numbers(self, line: int, row: list[str]) -> list[float]:
        try:
            return [float(cell) for cell in row]
        except ValueError as error:
            raise DataError(
                f"{self.path}:{line} has a cell that is not a number ({error}): a file of inputs "
                "has a number in each column. Other data belongs into predict_data: of the config."
            ) from error

    def _read_parquet(self) -> Iterator[Tensor]:
        try:
            from pyarrow import parquet
        except ImportError as error:
            raise DataError(
                f"'{self.path}' needs pyarrow: pip install 'hookloop[parquet]'."
            ) from error
        with parquet.ParquetFile(self.path) as file:
            for batch in file.iter_batches(self.batch_size):
                columns = [column.to_numpy(zero_copy_only=False) for column in batch.columns]
                yield self._tensor(np.stack(columns, axis=1).astype(np.float32))

    def _read_npz(self) -> Iterator[Tensor]:
        with np.load(self.path, allow_pickle=False) as archive:
            if len(archive.files) != 1:
                raise DataError(
                    f"'{self.path}' has {len(archive.files)} arrays "
                    f"({', '.join(archive.files) or 'none'}): a file of inputs has one."
                )
            array = archive[archive.files[0]]
        for start in range(0, len(array), self.batch_size):
            yield self._tensor(array[start : start + self.batch_size])

    def _tensor(self, array: NDArray[np.generic]) -> Tensor:
        if array.dtype.kind not in "biuf":
            raise DataError(f"'{self.path}' holds {array.dtype}, and not numbers.")
        if array.dtype.kind == "f":
            return torch.from_numpy(array.astype(np.float32))
        return torch.from_numpy(array.astype(bool if array.dtype.kind == "b" else np.int64))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
