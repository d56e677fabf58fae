"""The curves of MMEngine's schedulers."""

import math

import pytest
import torch

from hookloop_mmengine import optim


def make_optimizer(lr=1.0):
    return torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=lr, momentum=0.9)


def curve(kind, steps, lr=1.0, **options):
    scheduler = getattr(optim, kind)(make_optimizer(lr), **options)
    group = scheduler.optimizer.param_groups[0]
    found = [group["lr"]]
    for _ in range(steps):
        scheduler.step()
        found.append(group["lr"])
    return found


def cosine(done):
    return (1 + math.cos(math.pi * done)) / 2


@pytest.mark.parametrize(
    ("kind", "options", "wanted"),
    [
        ("ConstantLR", {"factor": 0.5, "end": 4}, [0.5, 0.5, 0.5, 1, 1]),
        ("ExponentialLR", {"gamma": 0.5}, [1, 0.5, 0.25, 0.125, 0.0625]),
        ("StepLR", {"step_size": 2, "gamma": 0.1}, [1, 1, 0.1, 0.1, 0.01]),
        ("MultiStepLR", {"milestones": [1, 3], "gamma": 0.1}, [1, 0.1, 0.1, 0.01, 0.01]),
        ("MultiStepLR", {"milestones": [2, 2], "gamma": 0.1}, [1, 1, 0.01, 0.01, 0.01]),
        ("LinearLR", {"start_factor": 0.2, "end": 5}, [0.2, 0.4, 0.6, 0.8, 1]),
        ("LinearLR", {"start_factor": 1, "end_factor": 0, "end": 5}, [1, 0.75, 0.5, 0.25, 0]),
        ("LinearLR", {"start_factor": 0.5, "end": 3}, [0.5, 0.75, 1, 1, 1]),
        ("PolyLR", {"end": 5}, [1, 0.75, 0.5, 0.25, 0]),
        ("PolyLR", {"power": 2, "eta_min": 0.2, "end": 5},
         [0.2 + 0.8 * (1 - n / 4) ** 2 for n in range(5)]),
        ("CosineAnnealingLR", {"T_max": 4}, [cosine(n / 4) for n in range(5)]),
        ("CosineAnnealingLR", {"T_max": 4, "eta_min": 0.2},
         [0.2 + 0.8 * cosine(n / 4) for n in range(5)]),
        ("CosineAnnealingLR", {"T_max": 2, "eta_min_ratio": 0.5}, [1, 0.75, 0.5, 0.75, 1]),
        ("CosineAnnealingLR", {"end": 5}, [cosine(n / 5) for n in range(5)]),
        ("CosineRestartLR", {"periods": [2, 4], "restart_weights": [1, 0.5], "eta_min": 0},
         [1, 0.5, 0.5, 0.5 * cosine(1 / 4), 0.5 * cosine(2 / 4)]),
        ("CosineRestartLR", {"periods": [6], "eta_min_ratio": 0.1},
         [0.1 + 0.9 * cosine(n / 6) for n in range(5)]),
    ],
    ids=str,
)  # fmt: skip
def test_the_curve(kind, options, wanted):
    assert curve(kind, 4, **options) == pytest.approx(wanted)


def test_a_constant_factor_ends_with_mmengines_bits():
    found = curve("ConstantLR", 3, lr=0.1, factor=1 / 3, end=3)
    assert found[-1] == 0.1 * (1 / 3) * (1.0 / (1 / 3))


@pytest.mark.parametrize("strategy", ["cos", "linear"])
@pytest.mark.parametrize("three_phase", [False, True])
def test_one_cycle_is_that_of_torch(strategy, three_phase):
    options = {"pct_start": 0.4, "three_phase": three_phase, "div_factor": 10.0}
    ours = curve("OneCycleLR", 9, eta_max=2.0, total_steps=10, anneal_strategy=strategy, **options)
    optimizer = make_optimizer()
    theirs = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, 2.0, total_steps=10, anneal_strategy=strategy, cycle_momentum=False, **options
    )
    wanted = [optimizer.param_groups[0]["lr"]]
    for _ in range(9):
        optimizer.step()
        theirs.step()
        wanted.append(optimizer.param_groups[0]["lr"])
    assert ours == pytest.approx(wanted)


def test_one_cycle_ends():
    with pytest.raises(ValueError, match="Tried to step 4 times; there are 3 steps"):
        curve("OneCycleLR", 9, eta_max=1.0, total_steps=3)


@pytest.mark.parametrize(
    ("kind", "options", "error"),
    [
        ("ConstantLR", {"factor": 1.5}, ValueError),
        ("ConstantLR", {"factor": -0.1}, ValueError),
        ("LinearLR", {"start_factor": 2}, ValueError),
        ("LinearLR", {"end_factor": -1}, ValueError),
        ("CosineAnnealingLR", {"T_max": 2, "eta_min": 0, "eta_min_ratio": 0.1}, AssertionError),
        ("CosineRestartLR", {"periods": [2]}, AssertionError),
        ("CosineRestartLR", {"periods": [2, 3], "eta_min": 0}, AssertionError),
        ("ReduceOnPlateauLR", {"factor": 1.0}, ValueError),
    ],
)
def test_wrong_arguments_are_rejected(kind, options, error):
    with pytest.raises(error):
        curve(kind, 0, **options)


def test_after_the_last_period_the_value_stays():
    values = curve("CosineRestartLR", 6, periods=[3], eta_min=0)
    assert values[2:] == [values[2]] * len(values[2:])
    assert len(set(values)) == 3


def test_poly_takes_its_arguments_in_mmengines_order():
    scheduler = optim.PolyLR(make_optimizer(), 0.2, 2.0, end=5)
    assert (scheduler.eta_min, scheduler.power) == (0.2, 2.0)


def plateau(values, **options):
    scheduler = optim.ReduceOnPlateauLR(make_optimizer(), **options)
    group = scheduler.optimizer.param_groups[0]
    found = []
    for value in values:
        scheduler.step({"loss": value, "acc": value})
        found.append(round(group["lr"], 8))
    return found


@pytest.mark.parametrize(
    ("values", "options", "wanted"),
    [
        ([1, 1, 1, 1, 0.5], {"patience": 1}, [1, 1, 0.1, 0.1, 0.1]),
        ([1, 1, 1], {"patience": 0}, [1, 0.1, 0.01]),
        ([1, 0.99995, 0.9], {"patience": 0}, [1, 0.1, 0.1]),
        ([1, 0.99995, 0.9], {"patience": 0, "threshold": 0}, [1, 1, 1]),
        ([1, 0.95, 0.8], {"patience": 0, "threshold": 0.1, "threshold_rule": "abs"}, [1, 0.1, 0.1]),
        ([1, 1, 1, 1], {"patience": 0, "cooldown": 2}, [1, 0.1, 0.1, 0.1]),
        ([1, 1, 1], {"patience": 0, "min_value": 0.05}, [1, 0.1, 0.05]),
        ([1, 1], {"patience": 0, "min_value": 1 - 1e-9}, [1, 1]),
        ([1, 2, 1.5], {"patience": 0, "monitor": "acc", "rule": "greater"}, [1, 1, 0.1]),
        ([1, math.nan, 0.5], {"patience": 0}, [1, 0.1, 0.1]),
    ],
    ids=str,
)
def test_a_plateau_lowers_the_value(values, options, wanted):
    assert plateau(values, **options) == wanted


def test_a_metric_that_is_missing_is_an_error():
    scheduler = optim.ReduceOnPlateauLR(make_optimizer(), monitor="zebra")
    with pytest.raises(KeyError, match="zebra is not in the metrics: loss"):
        scheduler.step({"loss": 1.0})
    scheduler.step(1.0)
    assert scheduler.best == 1


def test_momentum_follows_the_same_curves():
    scheduler = optim.MultiStepMomentum(make_optimizer(), milestones=[1], gamma=0.5)
    scheduler.step()
    assert scheduler.optimizer.param_groups[0]["momentum"] == 0.45
    assert scheduler.optimizer.param_groups[0]["lr"] == 1
