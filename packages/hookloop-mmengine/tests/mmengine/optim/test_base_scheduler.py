"""The base of schedulers: windows, momentum, states and conversion to iterations."""

import pytest
import torch

from hookloop_mmengine.optim import (
    ExponentialLR,
    ExponentialMomentum,
    MultiStepLR,
    OptimWrapper,
    StepLR,
    StepMomentum,
    _ParamScheduler,
)
from hookloop_mmengine.optim.base_scheduler import INF, by_lr_and_momentum


def make_optimizer(kind=torch.optim.SGD, **options):
    return kind([torch.nn.Parameter(torch.ones(1))], **({"lr": 1.0} | options))


def rates(scheduler, steps, key="lr"):
    group = scheduler.optimizer.param_groups[0]
    found = [group[key]]
    for _ in range(steps):
        scheduler.step()
        found.append(group[key])
    return found


def test_outside_of_the_window_nothing_changes():
    scheduler = ExponentialLR(make_optimizer(), gamma=0.5, begin=2, end=4)
    assert rates(scheduler, 5) == [1, 1, 1, 0.5, 0.5, 0.5]


def test_two_schedulers_act_on_one_parameter():
    optimizer = make_optimizer()
    warm, decay = ExponentialLR(optimizer, gamma=0.5, end=3), StepLR(optimizer, 2, gamma=0.1)
    found = []
    for _ in range(4):
        warm.step()
        decay.step()
        found.append(round(optimizer.param_groups[0]["lr"], 6))
    assert found == [0.5, 0.025, 0.025, 0.0025]


def test_every_group_has_its_own_value():
    groups = [{"params": [torch.nn.Parameter(torch.ones(1))], "lr": lr} for lr in (1.0, 4.0)]
    scheduler = ExponentialLR(torch.optim.SGD(groups, lr=9.0), gamma=0.5)
    scheduler.step()
    assert scheduler.get_last_value() == [0.5, 2]
    assert scheduler.base_values == [1, 4]


def test_a_wrapped_optimizer_is_unwrapped():
    optimizer = make_optimizer()
    assert ExponentialLR(OptimWrapper(optimizer), gamma=0.5).optimizer is optimizer


def test_momentum_of_sgd_and_of_adam():
    assert rates(ExponentialMomentum(make_optimizer(momentum=0.8), gamma=0.5), 1, "momentum") == [
        0.8, 0.4,
    ]  # fmt: skip
    adam = make_optimizer(torch.optim.Adam, betas=(0.8, 0.99))
    assert rates(StepMomentum(adam, step_size=1, gamma=0.5), 1, "betas") == [
        (0.8, 0.99), (0.4, 0.99),
    ]  # fmt: skip


@pytest.mark.parametrize("window", [{"begin": 3, "end": 3}, {"begin": 5, "end": 2}, {"begin": -1}])
def test_a_wrong_window_is_rejected(window):
    with pytest.raises(ValueError, match="end should be larger than begin, but got begin="):
        ExponentialLR(make_optimizer(), gamma=0.5, **window)


def test_an_unknown_parameter_is_rejected():
    class Constant(_ParamScheduler):
        def values(self, current):
            return list(current)

    with pytest.raises(KeyError, match="zebra is not in the parameter groups"):
        Constant(make_optimizer(), "zebra")


def test_a_state_continues_where_it_was():
    first = ExponentialLR(make_optimizer(), gamma=0.5, end=5)
    rates(first, 2)
    optimizer = make_optimizer()
    second = ExponentialLR(optimizer, gamma=0.5, end=5)
    optimizer.param_groups[0]["lr"] = 0.25
    second.load_state_dict(first.state_dict())
    assert "optimizer" not in first.state_dict()
    assert rates(second, 3) == rates(first, 3) == [0.25, 0.125, 0.0625, 0.0625]


def test_epochs_become_iterations():
    scheduler = MultiStepLR.build_iter_from_epoch(
        make_optimizer(), milestones=[1, 2], begin=1, end=4, epoch_length=3
    )
    assert (scheduler.begin, scheduler.end, scheduler.by_epoch) == (3, 12, False)
    assert scheduler.milestones == {3: 1, 6: 1}
    step = StepLR.build_iter_from_epoch(make_optimizer(), step_size=2, epoch_length=3)
    assert (step.step_size, step.end) == (6, INF)


@pytest.mark.parametrize(
    "options", [{"by_epoch": False, "epoch_length": 2}, {}, {"epoch_length": 0}]
)
def test_a_conversion_needs_epochs_of_a_known_length(options):
    with pytest.raises(AssertionError):
        StepLR.build_iter_from_epoch(make_optimizer(), step_size=2, **options)


def test_names_of_the_two_forms():
    class ToyParamScheduler(_ParamScheduler):
        """A toy."""

    lr, momentum = by_lr_and_momentum(ToyParamScheduler)
    assert (lr.__name__, momentum.__name__, lr.__doc__) == ("ToyLR", "ToyMomentum", "A toy.")
