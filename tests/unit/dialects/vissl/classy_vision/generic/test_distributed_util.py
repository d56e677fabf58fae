"""What hook files ask about the processes of a run."""

import pytest
import torch

from hookloop import dialects
from hookloop.dialects.vissl.classy_vision.generic import distributed_util as util
from hookloop.errors import HookloopError


def test_a_single_process_is_primary(monkeypatch):
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert (util.get_rank(), util.get_world_size()) == (0, 1)
    assert util.is_primary() and util.is_master()
    assert not util.is_distributed_training_run()
    util.barrier()


def test_several_processes_are_rejected_as_by_the_engine(monkeypatch):
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("WORLD_SIZE", "3")
    with pytest.raises(HookloopError, match="WORLD_SIZE is 3"):
        util.get_rank()


def test_the_maximum_of_one_process_is_its_own():
    tensor = torch.tensor([1.0, 2.0])
    assert util.all_reduce_max(tensor) is tensor


def test_hook_files_import_them():
    with dialects.alias("vissl"):
        from classy_vision.generic.distributed_util import is_primary
    assert is_primary is util.is_primary
