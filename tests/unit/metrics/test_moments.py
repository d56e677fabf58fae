import pytest
import torch

from hookloop.metrics.moments import Moments


@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_parts_of_any_size_give_the_moments_of_the_whole(shift):
    values = torch.randn(50, 3, 4, generator=torch.Generator().manual_seed(0)).double() + shift
    moments = Moments()
    for part in values.split([1, 7, 2, 40]):
        moments.add(part)
    flat = values.transpose(0, 1).flatten(1)
    assert torch.allclose(moments.mean, flat.mean(1), rtol=1e-12)
    assert torch.allclose(moments.variance(), flat.var(1), rtol=1e-9)
    assert moments.count == 200


def test_a_single_number_has_no_variance():
    moments = Moments()
    moments.add(torch.ones(1, 2))
    assert moments.variance().tolist() == [0, 0]
