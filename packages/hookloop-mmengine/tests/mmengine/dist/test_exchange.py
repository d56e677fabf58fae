"""What MMEngine's functions exchange among several processes, and in one."""

import numpy as np
import pytest
import torch
from tests.ranks import on_ranks

from hookloop_mmengine import dist


def test_nothing_is_exchanged_in_one_process():
    tensors = {"a": torch.ones(2), "count": torch.tensor([3])}
    dist.all_reduce_dict(tensors, op="mean")
    dist.all_reduce(tensors["a"], "max")
    dist.broadcast(tensors["a"])
    objects = [1, "x"]
    dist.broadcast_object_list(objects)
    assert tensors["a"].tolist() == [1, 1] and tensors["count"].tolist() == [3]
    assert objects == [1, "x"]
    assert [one.tolist() for one in dist.all_gather(tensors["a"])] == [[1, 1]]
    assert dist.all_gather_object("x") == ["x"]


def test_an_unknown_reduction_is_rejected_in_one_process_too():
    with pytest.raises(ValueError, match="should be one of sum, mean"):
        dist.all_reduce(torch.ones(1), "average")


def test_a_seed_is_drawn_from_the_generator_that_mmengine_seeds():
    state = np.random.get_state()
    np.random.seed(3)
    first = dist.sync_random_seed()
    np.random.seed(3)
    assert dist.sync_random_seed() == first
    assert 0 <= first < 2**31
    np.random.set_state(state)


def _reduced(operation, *values):
    tensor = torch.tensor(values[dist.get_rank()])
    dist.all_reduce(tensor, operation)
    return tensor.item()


def _exchange():
    dist.init_dist("pytorch")
    rank = dist.get_rank()
    own = torch.tensor([rank, 10 * rank])
    numbers = {"b": torch.tensor([float(rank)]), "a": torch.tensor([rank, 2 * rank])}
    # The order of the keys differs, and a mean of whole numbers need not be whole.
    items = list(numbers.items())
    means = dict(items if rank else reversed(items))
    dist.all_reduce_dict(means, op="mean")
    sent, objects = own.clone(), [rank, {"rank": rank}]
    dist.broadcast(sent, 2)
    dist.broadcast_object_list(objects, 1)
    np.random.seed(rank)
    return {
        "sum": _reduced("sum", 1.0, 2.0, 4.0),
        "mean": _reduced("mean", 1.0, 2.0, 6.0),
        "product": _reduced("product", 2, 3, 5),
        "min": _reduced("min", 2, 3, 1),
        "max": _reduced("MAX", 2, 3, 1),
        "bor": _reduced("bor", 1, 2, 8),
        "means": {name: one.tolist() for name, one in sorted(means.items())},
        "all": [one.tolist() for one in dist.all_gather(torch.stack([own, own]).T[0])],
        "objects": dist.all_gather_object({"rank": rank}),
        "sent": (sent.tolist(), objects),
        "seed": dist.sync_random_seed(),
    }


@pytest.mark.slow
def test_three_processes_exchange_what_they_have():
    ranks = on_ranks(_exchange, 3)
    assert len({rank.pop("seed") for rank in ranks}) == 1
    for rank in ranks:
        assert rank == {
            "sum": 7.0, "mean": 3.0, "product": 30, "min": 1, "max": 3, "bor": 11,
            "means": {"a": [1.0, 2.0], "b": [1.0]},
            "all": [[0, 0], [1, 1], [2, 2]],
            "objects": [{"rank": 0}, {"rank": 1}, {"rank": 2}],
            "sent": ([2, 20], [1, {"rank": 1}]),
        }  # fmt: skip
