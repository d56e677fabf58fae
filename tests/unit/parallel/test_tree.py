"""Sums over logical ranks are those of one tree, however many processes and numbers there are."""

import pytest
import torch
from tests.ranks import on_ranks

from hookloop.parallel.tree import SMALL, Node, Partial, TreeSum, add_up, cover
from hookloop.parallel.world import World


@pytest.mark.slow
@pytest.mark.parametrize("length", [2, SMALL + 1])  # Fewer numbers than processes; in slices.
def test_every_process_has_the_sum_of_the_whole_tree(length):
    leaves, size = 7, 3
    values = torch.randn(leaves, length, generator=torch.Generator().manual_seed(0))

    def total():
        torch.distributed.init_process_group("gloo")
        world = World(torch.distributed.get_rank(), size, logical=leaves)
        tree = TreeSum([cover(*world.leaves_of(rank)) for rank in range(size)], world.rank, leaves)
        for _ in range(2):  # The second time in the same memory.
            partial = Partial(torch.Tensor.add_)
            for leaf in world.leaves:
                partial.append(leaf, values[leaf].clone())
            found = tree.sum(dict(zip(partial.nodes, partial.values, strict=True)))
        return found.clone()

    whole = add_up({Node(leaf, 1): values[leaf] for leaf in range(leaves)}, leaves, torch.add)
    assert all(torch.equal(one, whole) for one in on_ranks(total, size))
