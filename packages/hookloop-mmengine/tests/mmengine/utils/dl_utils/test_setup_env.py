"""Settings for several processes."""

import os

import pytest
import torch.multiprocessing as mp

from hookloop_mmengine.utils.dl_utils import set_multi_processing


@pytest.fixture(autouse=True)
def restored(monkeypatch):
    before = mp.get_start_method(allow_none=True)
    yield
    mp.set_start_method(before, force=True)


def test_the_way_processes_start_is_set():
    mp.set_start_method("fork", force=True)
    with pytest.warns(UserWarning, match="`spawn` is different from the previous setting `fork`"):
        set_multi_processing("spawn")
    assert mp.get_start_method() == "spawn"


def test_each_of_several_processes_uses_one_thread(monkeypatch):
    mp.set_start_method("fork", force=True)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    set_multi_processing()
    assert "MKL_NUM_THREADS" not in os.environ
    with pytest.warns(UserWarning, match="Setting MKL_NUM_THREADS"):
        set_multi_processing(distributed=True)
    assert (os.environ["OMP_NUM_THREADS"], os.environ["MKL_NUM_THREADS"]) == ("3", "1")
    monkeypatch.delenv("MKL_NUM_THREADS")
