"""The processes of one node."""

import pytest
import torch
from tests.ranks import on_ranks

from hookloop_mmengine import dist


def test_there_is_no_group_in_one_process():
    assert dist.get_local_group() is None


def groups():
    dist.init_dist("pytorch")
    rank = dist.get_rank()
    with pytest.raises(RuntimeError, match="please use `init_local_group`"):
        dist.get_local_group()
    dist.init_local_group(node_rank=rank, num_gpus_per_node=1)
    with pytest.raises(AssertionError, match="already created"):
        dist.init_local_group(rank, 1)
    data = torch.ones(1) * (rank + 1)
    dist.all_reduce(data, group=dist.get_local_group())
    return data.item()


@pytest.mark.slow
def test_a_node_has_a_group_of_its_own():
    assert on_ranks(groups, 2) == [1, 2]
