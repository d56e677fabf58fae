import numpy as np
import pytest
import torch

from hookloop.data.reading.input_file import InputFile
from hookloop.errors import DataError


def test_a_csv_file_with_and_without_names(tmp_path):
    file = tmp_path / "in.csv"
    for text in ("a,b\n1,2\n3,4\n\n5,6.5\n", "1,2\n3,4\n5,6.5\n"):
        file.write_text(text)
        for size in (1, 2, 64):
            batches = list(InputFile(file, size))
            assert torch.cat(batches).tolist() == [[1, 2], [3, 4], [5, 6.5]]
            assert batches[0].dtype == torch.float32
    assert len(list(InputFile(file, 2))) == 2


def test_a_cell_that_is_not_a_number_is_shown_with_its_line(tmp_path):
    file = tmp_path / "in.csv"
    file.write_text("a,b\n1,2\n3,cat\n")
    with pytest.raises(DataError, match="in.csv:3"):
        list(InputFile(file))


def test_arrays_keep_whole_numbers(tmp_path):
    np.savez(tmp_path / "tokens.npz", tokens=np.arange(6, dtype=np.int32).reshape(3, 2))
    (batch,) = InputFile(tmp_path / "tokens.npz")
    assert batch.dtype == torch.int64
    np.savez(tmp_path / "images.npz", np.ones((3, 2)))
    assert [one.dtype for one in InputFile(tmp_path / "images.npz", 2)] == [torch.float32] * 2
    np.savez(tmp_path / "two.npz", a=np.ones(2), b=np.ones(2))
    with pytest.raises(DataError, match="2 arrays"):
        list(InputFile(tmp_path / "two.npz"))
    np.savez(tmp_path / "text.npz", np.array(["cat"]))
    with pytest.raises(DataError, match="not numbers"):
        list(InputFile(tmp_path / "text.npz"))


def test_a_parquet_file(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"a": [1, 2, 3], "b": [0.5, 1, 2]}), tmp_path / "in.parquet")
    assert torch.cat(list(InputFile(tmp_path / "in.parquet", 2))).tolist() == [
        [1, 0.5],
        [2, 1],
        [3, 2],
    ]


def test_other_files_are_rejected(tmp_path):
    with pytest.raises(DataError, match="must end in"):
        InputFile(tmp_path / "in.txt")
    with pytest.raises(DataError, match="There is no file"):
        InputFile(tmp_path / "in.csv")
