"""Tables of predictions in every format that a run writes."""

import io
import pickle

import numpy as np
import pytest

from hookloop_board import prediction_files
from hookloop_board.prediction_files import is_table, read_table


def npz(**arrays):
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def test_csv():
    assert read_table("a.csv", b"id,loss\n1,0.5\n\n2,x\n") == (
        ["id", "loss"],
        [["1", "0.5"], ["2", "x"]],
    )
    assert read_table("a.csv", b"") == ([], [])


def test_npz_has_a_column_per_number_of_a_sample():
    data = npz(
        output=np.array([[0.5, 1.5], [2.5, 3.5]]), targets=np.array([1, 0]), scalar=np.float64(3)
    )
    assert read_table("a.npz", data) == (
        ["output_0", "output_1", "targets"],
        [["0.5", "1.5", "1"], ["2.5", "3.5", "0"]],
    )


def test_parquet():
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    file = io.BytesIO()
    parquet.write_table(pyarrow.table({"id": [1, 2], "name": ["a", None]}), file)
    assert is_table("p.parquet")
    found = read_table("p.parquet", file.getvalue())
    assert found == (["id", "name"], [["1", "a"], ["2", "None"]])
    with pytest.raises(ValueError, match="not a table"):
        read_table("p.parquet", file.getvalue()[:-9])


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", pickle.dumps([1]), npz(a=np.ones(3))[:-30]])
def test_damage_is_named(data):
    with pytest.raises(ValueError, match=r"table|pickle|allow_pickle"):
        read_table("a.npz", data)


def test_pickled_objects_are_not_loaded():
    file = io.BytesIO()
    np.savez(file, a=np.array([print], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle"):
        read_table("a.npz", file.getvalue())


def test_what_is_packed_is_limited(monkeypatch):
    monkeypatch.setattr(prediction_files, "LARGEST", 10_000)
    with pytest.raises(ValueError, match="more than"):
        read_table("a.npz", npz(a=np.zeros(1_000_000)))


def test_other_files_are_none():
    assert is_table("a.csv") and is_table("a.npz") and not is_table("a.pkl")
