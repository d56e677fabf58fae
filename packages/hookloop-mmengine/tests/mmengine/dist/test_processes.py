"""Which process this is, how launchers name it, and what samplers are told."""

import pytest
import torch
from tests.ranks import on_ranks
from torch.utils.data import Dataset

from hookloop_mmengine import dist
from hookloop_mmengine.dataset import DefaultSampler, InfiniteSampler
from hookloop_mmengine.dist.processes import connect, first_node, name_rank, undivided
from hookloop.errors import HookloopError

SLURM = {
    "SLURM_PROCID": "5", "SLURM_NTASKS": "8", "SLURM_LOCALID": "1", "SLURM_NODEID": "2",
    "SLURM_NTASKS_PER_NODE": "2", "SLURM_JOB_NODELIST": "node[03-05,11]",
}  # fmt: skip
MPI = {
    "OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "4",
}  # fmt: skip


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", *SLURM, *MPI):
        monkeypatch.delenv(name, raising=False)


def test_one_process_is_the_main_one():
    assert not dist.is_distributed()
    assert dist.get_dist_info() == (dist.get_rank(), dist.get_world_size()) == (0, 1)
    assert (dist.get_local_rank(), dist.get_local_size()) == (0, 1)
    assert dist.is_main_process()
    assert dist.get_backend() is None and dist.get_default_group() is None
    assert dist.infer_launcher() == "none"


def test_a_function_of_the_main_process_returns_its_value():
    @dist.master_only
    def double(number):
        """Double it."""
        return 2 * number

    assert double(3) == 6
    assert double.__doc__ == "Double it."


def test_no_launcher_starts_no_group():
    dist.init_dist("none")
    assert not dist.is_distributed()
    dist.barrier()


@pytest.mark.parametrize(
    ("variables", "launcher"),
    [({"WORLD_SIZE": "2"}, "pytorch"), (SLURM, "slurm"), (MPI, "mpi")],
)
def test_the_launcher_is_found_by_its_variables(monkeypatch, variables, launcher):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert dist.infer_launcher() == launcher


def test_slurm_names_the_rank_and_the_first_node():
    variables = dict(SLURM)
    name_rank("slurm", variables)
    found = {name: variables[name] for name in variables if not name.startswith("SLURM")}
    assert found == {
        "RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2",
        "GROUP_RANK": "2", "MASTER_ADDR": "node03", "MASTER_PORT": "29500",
    }  # fmt: skip


def test_what_is_set_already_stays():
    variables = {**SLURM, "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "4711"}
    name_rank("slurm", variables)
    assert (variables["MASTER_ADDR"], variables["MASTER_PORT"]) == ("10.0.0.1", "4711")


@pytest.mark.parametrize(
    ("nodes", "first"),
    [("one", "one"), ("a1,a2", "a1"), ("gpu[7-9]", "gpu7"), ("x-[001,004],y", "x-001")],
)
def test_the_first_node_of_a_list(nodes, first):
    assert first_node(nodes) == first


@pytest.mark.parametrize(
    ("launcher", "error", "message"),
    [
        ("pytorch", HookloopError, "torchrun"),
        ("slurm", HookloopError, "SLURM_PROCID, which is not set"),
        ("mpi", HookloopError, "OMPI_COMM_WORLD_RANK, which is not set"),
        ("pytorhc", ValueError, "Did you mean 'pytorch'"),
    ],
)
def test_a_launcher_that_did_not_start_this_process_is_rejected(launcher, error, message):
    with pytest.raises(error, match=message):
        dist.init_dist(launcher)


class Ten(Dataset):
    def __len__(self):
        return 10

    def __getitem__(self, index):
        return index


def _three():
    dist.init_dist("pytorch", backend="nccl")
    first, again = connect("pytorch"), connect("pytorch")
    own = list(DefaultSampler(Ten(), seed=1))
    with undivided():
        whole = list(DefaultSampler(Ten(), seed=1))
        endless = InfiniteSampler(Ten())
        alone = dist.get_dist_info()
    return {
        "info": dist.get_dist_info(),
        "local": (dist.get_local_rank(), dist.get_local_size()),
        "main": dist.is_main_process(),
        "written": dist.master_only(lambda: "written")(),
        "same": first is again,
        "backend": dist.get_backend(),
        "launcher": dist.infer_launcher(),
        "own": own,
        "whole": whole,
        "alone": alone,
        "seed": endless.seed,
        "size": torch.distributed.get_world_size(dist.get_default_group()),
    }


@pytest.mark.slow
def test_three_processes_know_each_other():
    ranks = on_ranks(_three, 3)
    assert [rank["info"] for rank in ranks] == [(0, 3), (1, 3), (2, 3)]
    assert [rank["local"] for rank in ranks] == [(0, 3), (1, 3), (2, 3)]
    assert [rank["main"] for rank in ranks] == [True, False, False]
    assert [rank["written"] for rank in ranks] == ["written", None, None]
    assert {rank["seed"] for rank in ranks} == {ranks[0]["seed"]}
    for number, rank in enumerate(ranks):
        assert rank["same"] and rank["size"] == 3 and rank["alone"] == (0, 1)
        assert (rank["backend"], rank["launcher"]) == ("gloo", "pytorch")
        assert sorted(rank["whole"]) == list(range(10))
        # As in MMEngine, where each process takes every third sample and the first are repeated.
        whole = rank["whole"]
        assert rank["own"] == (whole + whole[:2])[number::3]


def _slurm():
    import os

    rank, size = os.environ.pop("RANK"), os.environ.pop("WORLD_SIZE")
    os.environ |= {"SLURM_PROCID": rank, "SLURM_NTASKS": size, "SLURM_NODELIST": "localhost"}
    dist.init_dist("slurm")
    return dist.all_gather_object(dist.get_rank())


@pytest.mark.slow
def test_processes_of_slurm_are_connected():
    assert on_ranks(_slurm, 2) == [[0, 1], [0, 1]]
