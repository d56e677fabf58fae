import pytest
import torch

from hookloop.data.model_inputs import inputs_for
from hookloop.errors import DataError


class Named(torch.nn.Module):
    def forward(self, input_ids, mask=None):
        return input_ids


class Whole(torch.nn.Module):
    def forward(self, batch):
        return batch


@pytest.mark.parametrize(
    ("batch", "expected"),
    [
        ({"input_ids": 1, "targets": 2}, ((), {"input_ids": 1})),
        ({"input_ids": 1, "mask": 3, "targets": 2}, ((), {"input_ids": 1, "mask": 3})),
        ({"input_ids": 1, "mask": 3}, ((), {"input_ids": 1, "mask": 3})),
        ({"input": 1, "target": 2}, ((1,), {})),
        ((1, 2), ((1,), {})),
        ((1, 2, 3), ((1, 2), {})),
        ([1], ((1,), {})),
        (1, ((1,), {})),
    ],
)
def test_targets_are_left_out_where_the_model_can_do_without(batch, expected):
    args, named = inputs_for(Named(), batch, has_loss=False)
    assert (args, dict(named)) == expected


def test_a_model_may_take_the_whole_batch():
    assert inputs_for(Whole(), {"a": 1, "b": 2}, has_loss=False) == (({"a": 1, "b": 2},), {})
    assert inputs_for(Whole(), (1, 2, 3), has_loss=True) == (((1, 2, 3),), {})


def test_what_does_not_fit_is_reported_with_the_signature():
    with pytest.raises(DataError, match="Bilinear.forward"):
        inputs_for(torch.nn.Bilinear(1, 1, 1), {"a": 1, "b": 2}, has_loss=False)
