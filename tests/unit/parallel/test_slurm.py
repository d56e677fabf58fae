import os
import socket
from datetime import timedelta

import pytest
import torch
from tests.ranks import free_port, on_ranks

from hookloop.errors import HookloopError
from hookloop.parallel import slurm
from hookloop.parallel.ranks import Ranks
from hookloop.parallel.world import World

BATCH = {  # What sbatch -N 2 --ntasks-per-node 4 gives to its script.
    "SLURM_JOB_ID": "4242",
    "SLURM_NTASKS": "8",
    "SLURM_NTASKS_PER_NODE": "4",
    "SLURM_TASKS_PER_NODE": "4(x2)",
    "SLURM_JOB_NODELIST": "gpu[003-004]",
    "SLURM_PROCID": "0",
    "SLURM_LOCALID": "0",
    "SLURM_NODEID": "0",
}
STEP = {  # What srun in it gives to the sixth task.
    **BATCH,
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_NUM_TASKS": "8",
    "SLURM_STEP_TASKS_PER_NODE": "4(x2)",
    "SLURM_STEP_NODELIST": "gpu[003-004]",
    "SLURM_PROCID": "5",
    "SLURM_LOCALID": "1",
    "SLURM_NODEID": "1",
}


def test_a_step_gives_each_task_its_rank():
    world = World.from_environment(STEP)
    assert world == World(5, 8, local_rank=1, local_size=4, node=1, restart=0)
    assert World.from_environment({**STEP, "SLURM_RESTART_COUNT": "3"}).restart == 3


@pytest.mark.parametrize("step", [None, str(2**32 - 5), str(2**32 - 6), ""])
def test_a_batch_script_or_a_shell_is_alone(step):
    variables = BATCH if step is None else {**BATCH, "SLURM_STEP_ID": step}
    assert World.from_environment(variables) == World()


def test_a_step_with_fewer_tasks_than_the_job_counts_its_own():
    small = {**STEP, "SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "1", "SLURM_NODEID": "0"}
    small["SLURM_STEP_TASKS_PER_NODE"] = "2"
    assert World.from_environment(small) == World(1, 2, local_rank=1, local_size=2)
    one = {**small, "SLURM_STEP_NUM_TASKS": "1", "SLURM_PROCID": "0", "SLURM_LOCALID": "0"}
    assert World.from_environment({**one, "SLURM_STEP_TASKS_PER_NODE": "1"}).is_alone


def test_the_tasks_of_a_job_do_not_count_for_a_smaller_step():
    without = {name: value for name, value in STEP.items() if "STEP_TASKS" not in name}
    without |= {"SLURM_STEP_NUM_TASKS": "6", "SLURM_NTASKS_PER_NODE": "3"}
    assert World.from_environment(without).local_size == 3


def test_torchrun_in_a_step_wins():
    inside = {**STEP, "RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
    assert World.from_environment(inside) == World(1, 2, local_rank=1, local_size=2)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"SLURM_PROCID": "8"}, "SLURM_PROCID=8 does not fit SLURM_STEP_NUM_TASKS=8"),
        ({"SLURM_NODEID": "one"}, "SLURM_NODEID='one' must be a whole number"),
        ({"SLURM_STEP_TASKS_PER_NODE": "4(y2)"}, r"'4\(y2\)' must be a number of tasks"),
    ],
)
def test_variables_that_do_not_fit_are_rejected(changed, message):
    with pytest.raises(HookloopError, match=message):
        World.from_environment({**STEP, **changed})


@pytest.mark.parametrize(
    ("nodes", "first"),
    [
        ("gpu[003-005,9],login1", "gpu003"),
        ("login1,gpu[003-005]", "login1"),
        ("rack[2-3]node[01,04]", "rack2node01"),
        ("node7.cluster-a.org", "node7.cluster-a.org"),
    ],
)
def test_the_first_host_of_a_list(nodes, first):
    assert slurm.first_host(nodes) == first


def test_all_tasks_meet_at_one_place():
    places = {slurm.meeting_place({**STEP, "SLURM_PROCID": str(rank)}) for rank in range(8)}
    ((host, port),) = places
    assert host == "gpu003"
    assert 15_000 <= port < 30_000
    assert slurm.meeting_place({**STEP, "SLURM_STEP_ID": "1"}) != (host, port)
    assert slurm.meeting_place({**STEP, "SLURM_JOB_ID": "4243"}) != (host, port)
    own = {**STEP, "MASTER_ADDR": "other", "MASTER_PORT": "29500"}
    assert slurm.meeting_place(own) == ("other", 29500)


def test_without_a_list_of_hosts_the_way_out_is_named():
    with pytest.raises(HookloopError, match="MASTER_ADDR"):
        slurm.meeting_place({"SLURM_STEP_ID": "0"})
    with pytest.raises(HookloopError, match="has no host"):
        slurm.meeting_place({"SLURM_STEP_NODELIST": ",a"})


def test_a_store_alone_needs_no_variables_of_torchrun():
    variables = {"SLURM_STEP_NODELIST": "127.0.0.1", "MASTER_PORT": str(free_port())}
    before = dict(os.environ)
    store = slurm.open_store(0, 1, timedelta(seconds=20), variables)
    store.set("a", "b")
    assert store.get("a") == b"b"
    assert dict(os.environ) == before


@pytest.mark.slow
def test_ranks_find_each_other_through_the_variables_of_a_step():
    job = str(os.getpid() * 7 + free_port())  # Decides the port, so not the same in each run.
    host = socket.gethostname()

    def meet():
        rank, size = os.environ["RANK"], os.environ["WORLD_SIZE"]
        for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"):
            del os.environ[name]
        for name in ("MASTER_ADDR", "MASTER_PORT"):
            del os.environ[name]
        os.environ |= {"SLURM_STEP_ID": "0", "SLURM_JOB_ID": job, "SLURM_STEP_NODELIST": host}
        os.environ |= {"SLURM_PROCID": rank, "SLURM_LOCALID": rank, "SLURM_STEP_NUM_TASKS": size}
        ranks = Ranks(World.from_environment(), timeout=30)
        ranks.open(torch.device("cpu"))
        return ranks.gather(ranks.world.local_rank), "MASTER_ADDR" in os.environ

    assert on_ranks(meet, 3) == [([0, 1, 2], False)] * 3
