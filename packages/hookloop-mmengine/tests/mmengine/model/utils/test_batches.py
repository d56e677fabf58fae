"""One of several."""

import pytest
import torch

from hookloop_mmengine.model import merge_dict, stack_batch


def test_tensors_are_padded_at_their_ends():
    small, large = torch.ones(1, 1, 2), torch.full((1, 3, 1), 2.0)
    batch = stack_batch([small, large], pad_size_divisor=2, pad_value=9)
    assert batch.shape == (2, 1, 4, 2)
    assert batch[0, 0].tolist() == [[1, 1], [9, 9], [9, 9], [9, 9]]
    assert batch[1, 0].tolist() == [[2, 9], [2, 9], [2, 9], [9, 9]]


@pytest.mark.parametrize("tensors", [(), [], [torch.ones(1, 1), torch.ones(1)]])
def test_what_cannot_be_stacked_is_rejected(tensors):
    with pytest.raises(AssertionError):
        stack_batch(tensors)


def test_dicts_are_merged_and_not_traced():
    assert merge_dict({"a": 1, "b": 2}, {"b": 3}) == {"a": 1, "b": 3}
    with pytest.raises(AssertionError, match="should be a dict"):
        merge_dict([1])

    class Net(torch.nn.Module):
        def forward(self, x):
            return merge_dict({"a": x}, {"b": x + 1})

    traced = torch.fx.symbolic_trace(Net())
    assert traced(1) == {"a": 1, "b": 2}
