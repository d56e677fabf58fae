"""The short way around torch's wrappers: whoever could see the difference gets the long way."""

import warnings

import pytest
import torch
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from hookloop.core.update import step_optimizer, zero_optimizer


class Stepping(torch.optim.SGD):
    """Somebody's optimizer, with a step of its own around torch's."""

    steps = 0

    def step(self, closure=None):
        self.steps += 1
        return super().step(closure)


def make(kind=torch.optim.SGD, **options):
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2)
    return model, kind(model.parameters(), lr=0.1, **options)


def backward(model):
    model(torch.ones(4, 3)).square().mean().backward()


def marks(work):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        work()
    return {event.key for event in profiler.key_averages() if "Optimizer" in event.key}


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (torch.optim.SGD, {"momentum": 0.9}),
        (torch.optim.AdamW, {}),
        (torch.optim.RMSprop, {"foreach": True}),
        (torch.optim.Adam, {"fused": True}),
        (Stepping, {}),
    ],
)
def test_the_weights_have_the_same_bits_as_with_torchs_own_calls(kind, options):
    ours, theirs = make(kind, **options), make(kind, **options)
    for _ in range(5):
        for model, optimizer in (ours, theirs):
            short = optimizer is ours[1]
            zero_optimizer(optimizer) if short else optimizer.zero_grad()
            backward(model)
            step_optimizer(optimizer) if short else optimizer.step()
    for one, other in zip(ours[0].parameters(), theirs[0].parameters(), strict=True):
        assert torch.equal(one, other)


def test_an_overridden_step_is_called():
    model, optimizer = make(Stepping)
    backward(model)
    step_optimizer(optimizer)
    assert optimizer.steps == 1


def test_a_step_replaced_on_the_instance_is_called():
    model, optimizer = make()
    backward(model)
    called = []
    optimizer.step = lambda: called.append(1)
    step_optimizer(optimizer)
    assert called == [1]


def test_a_zero_grad_replaced_on_the_instance_is_called():
    _, optimizer = make()
    called = []
    optimizer.zero_grad = lambda: called.append(1)
    zero_optimizer(optimizer)
    assert called == [1]


@pytest.mark.parametrize("everywhere", [False, True])
def test_torchs_hooks_around_the_step_are_called(everywhere):
    model, optimizer = make()
    backward(model)
    called = []
    before, after = (
        (register_optimizer_step_pre_hook, register_optimizer_step_post_hook)
        if everywhere
        else (optimizer.register_step_pre_hook, optimizer.register_step_post_hook)
    )
    handles = [
        before(lambda *_: called.append("before")),
        after(lambda *_: called.append("after")),
    ]
    step_optimizer(optimizer)
    for handle in handles:
        handle.remove()
    step_optimizer(optimizer)
    assert called == ["before", "after"]


def test_a_profiler_finds_torchs_marks():
    model, optimizer = make()
    backward(model)
    assert marks(lambda: step_optimizer(optimizer)) == {"Optimizer.step#SGD.step"}
    assert marks(lambda: zero_optimizer(optimizer)) == {"Optimizer.zero_grad#SGD.zero_grad"}


def test_a_scheduler_knows_that_the_step_came_before_its_own():
    model, optimizer = make()
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    backward(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step_optimizer(optimizer)
        schedule.step()
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.01)
