"""Pickles of plain data."""

import collections
import os
import pickle

import numpy as np
import pytest
import torch

from hookloop_mmengine import fileio


class Own:
    def __reduce__(self):
        return os.mkdir, ("made-by-a-pickle",)


@pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
def test_plain_data_is_read(tmp_path, protocol):
    value = {
        "numbers": [1, 2.5, 3j, None, True],
        "sets": ({1}, frozenset({2})),
        "text": "gr\u00fcn",
        "bytes": b"\x00\xff",
        "ordered": collections.OrderedDict(a=1),
        "scalar": np.float32(0.5),
    }
    arrays = {"array": np.arange(6.0).reshape(2, 3), "tensor": torch.arange(4).float()}
    fileio.dump(value | arrays, tmp_path / "a.pkl", protocol=protocol)
    read = fileio.load(tmp_path / "a.pkl")
    assert {name: read[name] for name in value} == value
    assert np.array_equal(read["array"], arrays["array"])
    assert torch.equal(read["tensor"], arrays["tensor"])


@pytest.mark.parametrize("value", [Own(), os.system, eval])
def test_code_is_not_run(tmp_path, value):
    (tmp_path / "a.pkl").write_bytes(pickle.dumps([value]))
    with pytest.raises(pickle.UnpicklingError, match="only plain data is read"):
        fileio.load(tmp_path / "a.pkl")
    assert not os.path.exists("made-by-a-pickle")
