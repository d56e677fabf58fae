"""Averaged models, with the numbers that were measured in MMEngine."""

import pytest
import torch
from torch import nn

from hookloop_mmengine.model import (
    BaseAveragedModel,
    ExponentialMovingAverage,
    MomentumAnnealingEMA,
    StochasticWeightAverage,
)


def averages(kind, **options):
    """The average while the weight is 1, 2, 3, 4, 5."""
    model = nn.Linear(1, 1, bias=False)
    averaged = kind(model, **options)
    found = []
    for value in range(1, 6):
        model.weight.data.fill_(value)
        averaged.update_parameters(model)
        found.append(float(averaged.module.weight))
    return found


@pytest.mark.parametrize(
    ("kind", "options", "wanted"),
    [
        (ExponentialMovingAverage, {"momentum": 0.1}, [1, 1.1, 1.29, 1.561, 1.9049]),
        (ExponentialMovingAverage, {"momentum": 0.1, "interval": 2}, [1, 1, 1.2, 1.2, 1.58]),
        (StochasticWeightAverage, {}, [1, 1.5, 2, 2.5, 3]),
        (StochasticWeightAverage, {"interval": 2}, [1, 1, 2, 2, 3]),
        (
            MomentumAnnealingEMA,
            {"momentum": 0.1, "gamma": 2},
            [1, 1.66667, 2.33333, 3, 3.66667],
        ),
        (MomentumAnnealingEMA, {"momentum": 0.9, "gamma": 2}, [1, 1.9, 2.89, 3.889, 4.8889]),
    ],
)
def test_the_measured_averages(kind, options, wanted):
    assert averages(kind, **options) == pytest.approx(wanted, abs=1e-4)


def test_the_copy_is_independent_and_has_no_gradients():
    model = nn.Linear(2, 1)
    averaged = StochasticWeightAverage(model)
    assert averaged.module is not model
    assert not any(parameter.requires_grad for parameter in averaged.parameters())
    assert all(parameter.requires_grad for parameter in model.parameters())
    inputs = torch.ones(1, 2)
    assert torch.equal(averaged(inputs), model(inputs))


@pytest.mark.parametrize(("update_buffers", "mean"), [(False, 3.0), (True, 2.0)])
def test_buffers_are_copied_or_averaged(update_buffers, mean):
    model = nn.BatchNorm1d(1)
    averaged = ExponentialMovingAverage(model, momentum=0.5, update_buffers=update_buffers)
    for value in (1.0, 3.0):
        model.running_mean.fill_(value)
        model.num_batches_tracked += 1
        averaged.update_parameters(model)
    assert float(averaged.module.running_mean) == mean
    # Counters are integers, which cannot be averaged.
    assert int(averaged.module.num_batches_tracked) == (1 if update_buffers else 2)


def test_the_number_of_updates_is_saved():
    model = nn.Linear(1, 1)
    averaged = StochasticWeightAverage(model)
    averaged.update_parameters(model)
    averaged.update_parameters(model)
    other = StochasticWeightAverage(model)
    other.load_state_dict(averaged.state_dict())
    assert int(other.steps) == 2
    assert set(averaged.state_dict()) == {"steps", "module.weight", "module.bias"}


@pytest.mark.parametrize("momentum", [0, 1, -0.1, 1.5])
def test_a_momentum_is_between_0_and_1(momentum):
    with pytest.raises(AssertionError, match="momentum must be in range"):
        ExponentialMovingAverage(nn.Linear(1, 1), momentum=momentum)


def test_gamma_is_positive():
    with pytest.raises(AssertionError, match="gamma must be greater than 0, but got 0"):
        MomentumAnnealingEMA(nn.Linear(1, 1), gamma=0)


def test_the_base_averages_nothing():
    model = nn.Linear(1, 1)
    base = BaseAveragedModel(model, device="cpu")
    base.update_parameters(model)
    with pytest.raises(NotImplementedError):
        base.update_parameters(model)
