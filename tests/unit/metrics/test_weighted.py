import pytest
import torch

from hookloop.metrics.weighted import WeightedMean


def mean_of(*pairs):
    mean = WeightedMean()
    for value, weight in pairs:
        mean.add(value, weight)
    return mean.mean()


@pytest.mark.parametrize("kind", [float, torch.tensor])
@pytest.mark.parametrize("weight", [float, torch.tensor])
def test_values_are_weighted(kind, weight):
    assert float(mean_of((kind(1.0), weight(3)), (kind(5.0), weight(1)))) == 2.0


@pytest.mark.parametrize("weight", [int, torch.tensor])
def test_a_value_of_weight_zero_is_left_out_even_if_it_is_nan(weight):
    nan = torch.tensor(float("nan"))
    assert float(mean_of((nan, weight(0)), (torch.tensor(5.0), weight(1)))) == 5.0
    assert float(mean_of((nan, weight(0)))) == 0.0


def test_half_precision_does_not_overflow():
    half = torch.tensor(10.0, dtype=torch.float16)
    mean = mean_of((half, 1e6), (half, 1e6))
    assert mean == half and mean.dtype == torch.float16


def test_the_mean_of_whole_numbers_is_not_cut_off():
    weight = torch.tensor(1)
    assert float(mean_of((torch.tensor(1), weight), (torch.tensor(2), weight))) == 1.5
