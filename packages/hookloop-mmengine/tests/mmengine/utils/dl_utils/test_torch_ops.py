"""Functions of torch whose defaults have changed."""

import torch

from hookloop_mmengine.utils.dl_utils import torch_meshgrid


def test_a_grid_has_the_order_of_a_matrix():
    rows, columns = torch_meshgrid(torch.arange(2), torch.arange(3))
    assert rows.tolist() == [[0, 0, 0], [1, 1, 1]]
    assert columns.tolist() == [[0, 1, 2], [0, 1, 2]]
