"""What MMEngine's functions for several processes do in one, and in two."""

import os

import numpy as np
import pytest
import torch
import torch.distributed
import torch.multiprocessing

from hookloop.dialects.mmengine import dist


def test_one_process_is_the_main_one():
    assert not dist.is_distributed()
    assert dist.get_dist_info() == (dist.get_rank(), dist.get_world_size()) == (0, 1)
    assert dist.is_main_process()
    assert dist.infer_launcher() == "none"


def test_nothing_is_exchanged_in_one_process():
    tensors = {"a": torch.ones(2), "count": torch.tensor([3])}
    dist.all_reduce_dict(tensors, op="mean")
    dist.all_reduce_params([tensors["a"]])
    objects = [1, "x"]
    dist.broadcast_object_list(objects)
    dist.barrier()
    assert tensors["a"].tolist() == [1, 1]
    assert objects == [1, "x"]


@pytest.mark.parametrize(("size", "wanted"), [(2, [1, 2]), (3, [1, 2, 3]), (9, [1, 2, 3])])
def test_results_beyond_the_size_of_the_data_are_dropped(size, wanted):
    assert dist.collect_results([1, 2, 3], size) == wanted


def test_a_function_of_the_main_process_returns_its_value():
    @dist.master_only
    def double(number):
        """Double it."""
        return 2 * number

    assert double(3) == 6
    assert double.__doc__ == "Double it."


def test_a_seed_is_drawn_from_the_generator_that_mmengine_seeds():
    state = np.random.get_state()
    np.random.seed(3)
    first = dist.sync_random_seed()
    np.random.seed(3)
    assert dist.sync_random_seed() == first
    assert 0 <= first < 2**31
    np.random.set_state(state)


def test_no_launcher_starts_no_group():
    dist.init_dist("none")
    assert not dist.is_distributed()


def _in_two_processes(rank, path, queue):
    os.environ.update(MASTER_ADDR="127.0.0.1", RANK=str(rank), WORLD_SIZE="2")
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{path}", rank=rank, world_size=2
    )
    try:
        mean, total = torch.tensor([float(rank)]), torch.tensor([1.0 + rank])
        dist.all_reduce_dict({"mean": mean, "count": torch.tensor([7])}, op="mean")
        dist.all_reduce_params([total])
        objects = [f"from {rank}"]
        dist.broadcast_object_list(objects)
        results = dist.collect_results([rank, rank + 2, rank + 4], 5)
        hidden = dist.master_only(lambda: "written")()
        np.random.seed(rank)
        queue.put((rank, dist.get_dist_info(), float(mean), float(total), objects, results, hidden,
                   dist.sync_random_seed()))  # fmt: skip
        dist.barrier()
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.slow
def test_two_processes_exchange_what_they_have(tmp_path):
    context = torch.multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    processes = [
        context.Process(target=_in_two_processes, args=(rank, tmp_path / "group", queue))
        for rank in range(2)
    ]
    for process in processes:
        process.start()
    rows = sorted(queue.get() for _ in processes)
    for process in processes:
        process.join()
        assert process.exitcode == 0
    seed = rows[0][-1]
    assert rows == [
        (0, (0, 2), 0.5, 3.0, ["from 0"], [0, 1, 2, 3, 4], "written", seed),
        (1, (1, 2), 0.5, 3.0, ["from 0"], None, None, seed),
    ]
