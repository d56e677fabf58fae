"""Functions about the processes of a run, in a single one and among two."""

import numpy as np
import pytest
import torch
import torch.distributed as dist

from hookloop_dialects.imix.utils import distributed_info as comm


def test_a_single_process_is_the_first_and_gets_what_it_gives():
    assert (comm.get_rank(), comm.get_local_rank(), comm.get_world_size()) == (0, 0, 1)
    assert comm.is_main_process() and comm.is_single_processes()
    comm.synchronize()
    assert comm.all_gather("mine") == comm.gather("mine") == ["mine"]
    assert comm.reduce_dict({"a": torch.ones(())}) == {"a": torch.ones(())}
    np.random.seed(3)
    expected = np.random.randint(2**31)
    np.random.seed(3)
    assert comm.shared_random_seed() == expected


def test_only_the_first_process_runs_what_is_marked(monkeypatch):
    @comm.master_only_run
    def act():
        """Act."""
        return "done"

    assert act() == "done" and act.__doc__ == "Act."
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert act() is None


@pytest.mark.parametrize(("rank", "gathered"), [(0, ["a", "b"]), (1, [])])
def test_among_two_processes_the_functions_exchange(rank, gathered, monkeypatch):
    monkeypatch.setenv("RANK", str(rank))
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr(dist, "is_initialized", lambda: True)
    monkeypatch.setattr(dist, "get_world_size", lambda group=None: 2)
    monkeypatch.setattr(
        dist, "all_gather_object", lambda found, data, group: found.__setitem__(slice(2), "ab")
    )
    monkeypatch.setattr(dist, "reduce", lambda values, dst: values.mul_(4))
    barriers = []
    monkeypatch.setattr(dist, "barrier", lambda: barriers.append(1))
    comm.synchronize()
    assert barriers == [1] and not comm.is_single_processes()
    assert comm.all_gather("a") == ["a", "b"]
    assert comm.gather("a") == gathered
    assert comm.reduce_dict({"a": torch.ones(())})["a"] == (2 if rank == 0 else 4)
