import pytest
import torch
import torch.distributed

from hookloop.parallel.reduce import mean_over_ranks


def test_a_single_process_changes_nothing():
    tensors = [torch.ones(3), torch.tensor(2.5)]
    mean_over_ranks(iter(tensors))
    assert [one.tolist() for one in tensors] == [[1, 1, 1], 2.5]


def _average(rank, directory):
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{directory}/meeting", rank=rank, world_size=2
    )
    tensors = [torch.full((2,), float(rank)), torch.tensor(10.0 * rank, requires_grad=True)]
    mean_over_ranks(tensors)
    torch.save(tensors, f"{directory}/{rank}.pt")
    torch.distributed.destroy_process_group()


@pytest.mark.slow
@pytest.mark.skipif(not torch.distributed.is_gloo_available(), reason="torch has no gloo here")
def test_every_rank_gets_the_mean_of_all(tmp_path):
    context = torch.multiprocessing.get_context("spawn")
    processes = [context.Process(target=_average, args=(rank, str(tmp_path))) for rank in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(100)
        assert process.exitcode == 0
    for rank in range(2):
        vector, number = torch.load(tmp_path / f"{rank}.pt", weights_only=True)
        assert (vector.tolist(), number.item()) == ([0.5, 0.5], 5.0)
