"""Small files."""

import pickle

import numpy as np
import pytest

from hookloop.errors import DataError
from hookloop_dialects.vissl.utils import io


def test_data_is_written_in_the_form_of_the_ending(tmp_path):
    path = f"{tmp_path}/metrics.json"
    io.save_file({"b": 1, "a": 2}, path)
    io.save_file({"c": 3}, path)
    assert (tmp_path / "metrics.json").read_text() == '{"a": 2, "b": 1}\n{"c": 3}\n'
    for name, data in (("one.json", {"a": [1]}), ("a.yaml", {"a": [1]})):
        io.save_file(data, f"{tmp_path}/{name}", append_to_json=False)
        assert io.load_file(f"{tmp_path}/{name}") == data
    io.save_file(np.arange(3), f"{tmp_path}/a.npy")
    assert io.load_file(f"{tmp_path}/a.npy").tolist() == [0, 1, 2]
    io.save_file([1], f"{tmp_path}/a.pkl")
    assert pickle.loads((tmp_path / "a.pkl").read_bytes()) == [1]
    (tmp_path / "a.txt").write_text("x\ny\n")
    assert io.load_file(f"{tmp_path}/a.txt") == ["x\n", "y\n"]


def test_forms_that_are_unknown_or_run_code_are_rejected(tmp_path):
    with pytest.raises(DataError, match=r"cannot write '\.mat'"):
        io.save_file(1, f"{tmp_path}/a.mat")
    with pytest.raises(DataError, match=r"cannot read '\.pkl'"):
        io.load_file(f"{tmp_path}/a.pkl")
    assert not list(tmp_path.iterdir())


def test_folders_and_links(tmp_path):
    folder = f"{tmp_path}/a/b"
    assert io.makedir(folder)
    (tmp_path / "a" / "b" / "old").write_text("o")
    (tmp_path / "a" / "b" / "new").write_text("n" * 1024**2)
    for name in ("old", "new"):
        io.create_file_symlink(f"{folder}/{name}", f"{folder}/link")
    assert (tmp_path / "a" / "b" / "link").read_text().startswith("n")
