"""Schedules of every kind continue exactly, and longer ones along the longer curve."""

import pytest
import torch
from torch.optim import lr_scheduler as schedulers

from hookloop.lr_schedule import Schedule


class Stairs(schedulers.LRScheduler):
    """A scheduler of a project's own, with a counter that torch knows nothing of."""

    def __init__(self, optimizer, width):
        self.width, self.left = width, width
        super().__init__(optimizer)

    def get_lr(self):
        self.left -= 1
        factor = 1.0
        if self.left == 0:
            self.left, factor = self.width, 0.5
        return [group["lr"] * factor for group in self.optimizer.param_groups]


KINDS = {
    "step": lambda o: schedulers.StepLR(o, 3),
    "exponential": lambda o: schedulers.ExponentialLR(o, 0.9),
    "cosine": lambda o: schedulers.CosineAnnealingLR(o, 20),
    "one cycle": lambda o: schedulers.OneCycleLR(o, 0.1, total_steps=30),
    "cyclic": lambda o: schedulers.CyclicLR(o, 0.01, 0.1, step_size_up=4),
    "warm restarts": lambda o: schedulers.CosineAnnealingWarmRestarts(o, 3, T_mult=2),
    "lambda": lambda o: schedulers.LambdaLR(o, lambda step: 1 / (1 + step)),
    "own": lambda o: Stairs(o, 4),
    "sequential": lambda o: schedulers.SequentialLR(
        o, [schedulers.LinearLR(o, total_iters=5), schedulers.CosineAnnealingLR(o, 15)], [5]
    ),
    "chained": lambda o: schedulers.ChainedScheduler(
        [schedulers.ExponentialLR(o, 0.9), schedulers.StepLR(o, 4)]
    ),
}


def make(kind):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1, momentum=0.9)
    optimizer.step()
    return optimizer, Schedule(kind(optimizer))


def rates(optimizer, schedule, steps):
    found = []
    for count in range(1, steps + 1):
        schedule.step(count)
        found.append(optimizer.param_groups[0]["lr"])
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("cut", [1, 4, 5, 9, 14])
@pytest.mark.parametrize("kind", KINDS)
def test_it_continues_exactly(kind, cut, tmp_path):
    whole = rates(*make(KINDS[kind]), 20)
    optimizer, schedule = make(KINDS[kind])
    before = rates(optimizer, schedule, cut)
    torch.save([optimizer.state_dict(), schedule.state_dict()], tmp_path / "state.pth")
    states = torch.load(tmp_path / "state.pth", weights_only=True)
    optimizer, schedule = make(KINDS[kind])
    optimizer.load_state_dict(states[0])
    schedule.load_state_dict(states[1])
    assert before + rates(optimizer, schedule, 20 - cut) == whole


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("cut", [4, 10])
@pytest.mark.parametrize(
    "kind",
    [
        schedulers.CosineAnnealingLR,
        lambda o, length: schedulers.LinearLR(o, 1.0, 0.0, total_iters=length),
        lambda o, length: schedulers.OneCycleLR(o, 0.1, total_steps=length + 1),
        lambda o, length: schedulers.SequentialLR(
            o,
            [schedulers.LinearLR(o, total_iters=2), schedulers.CosineAnnealingLR(o, length - 2)],
            [2],
        ),
    ],
)
def test_a_longer_schedule_is_joined_where_the_shorter_one_was(kind, cut):
    longer = rates(*make(lambda o: kind(o, 20)), 20)
    first, schedule = make(lambda o: kind(o, 10))
    rates(first, schedule, cut)
    optimizer, joined = make(lambda o: kind(o, 20))
    optimizer.load_state_dict(first.state_dict())
    joined.load_state_dict(schedule.state_dict())
    assert rates(optimizer, joined, 20 - cut) == pytest.approx(longer[cut:])


def test_a_plateau_is_remembered():
    def kind(optimizer):
        return schedulers.ReduceLROnPlateau(optimizer, patience=2)

    def make_one():
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
        return optimizer, Schedule(kind(optimizer), metric="val/loss")

    optimizer, schedule = make_one()
    for value in (1.0, 1.0, 1.0):
        schedule.step_on(value)
    again, resumed = make_one()
    again.load_state_dict(optimizer.state_dict())
    resumed.load_state_dict(schedule.state_dict())
    resumed.step_on(1.0)
    assert again.param_groups[0]["lr"] == pytest.approx(0.01)
