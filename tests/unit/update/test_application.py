"""The two calls to an optimizer: direct where nobody can see the difference, ordinary elsewhere."""

import importlib.util
import warnings
from collections import Counter

import pytest
import torch
from tests.tiny import assert_same_bits, make_model, make_trainer
from torch.optim import optimizer as torch_optimizer
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from hookloop.update import application as optimizer_calls
from hookloop.update.application import step_optimizer, zero_optimizer


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


# --- a torch without the private names -----------------------------------------------------------


PRIVATE = {
    "_profiler_enabled": torch._C._autograd,
    "_global_optimizer_pre_hooks": torch_optimizer,
    "_global_optimizer_post_hooks": torch_optimizer,
}


@pytest.fixture
def load_without(monkeypatch):
    """Load a copy of the module as it would be where torch lacks some private names."""

    def load(*names):
        spec = importlib.util.spec_from_file_location(
            "calls_of_another_torch", optimizer_calls.__file__
        )
        module = importlib.util.module_from_spec(spec)
        with monkeypatch.context() as missing:
            for name in names:
                missing.delattr(PRIVATE[name], name)
            spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture
def marked(monkeypatch):
    """The marks that torch's own calls open for a profiler, which the direct way leaves out."""
    opened = []
    plain = torch.autograd.profiler.record_function

    def record_function(name, *args):
        opened.append(name.partition("#")[0])
        return plain(name, *args)

    monkeypatch.setattr(torch.autograd.profiler, "record_function", record_function)
    return opened


OPTIMIZERS = [
    (torch.optim.SGD, {"momentum": 0.9}),
    (torch.optim.AdamW, {}),
    (torch.optim.RMSprop, {"foreach": True}),
]


@pytest.mark.parametrize(
    ("missing", "expected"),
    [
        (list(PRIVATE), {"Optimizer.step": 4, "Optimizer.zero_grad": 4}),
        (["_profiler_enabled"], {"Optimizer.step": 4, "Optimizer.zero_grad": 4}),
        (["_global_optimizer_pre_hooks"], {"Optimizer.step": 4}),
        (["_global_optimizer_post_hooks"], {"Optimizer.step": 4}),
        ([], {}),
    ],
)
@pytest.mark.parametrize(("kind", "options"), OPTIMIZERS)
def test_where_torch_lacks_a_private_name_the_ordinary_call_is_made(
    missing, expected, kind, options, load_without, marked
):
    module = load_without(*missing)
    (ours, optimizer), (theirs, plain) = make(kind, **options), make(kind, **options)
    for _ in range(4):
        module.zero_optimizer(optimizer)
        backward(ours)
        module.step_optimizer(optimizer)
    assert Counter(marked) == expected
    for _ in range(4):
        plain.zero_grad()
        backward(theirs)
        plain.step()
    assert_same_bits(ours, theirs)


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize(("kind", "options"), OPTIMIZERS)
def test_a_training_without_them_ends_with_the_same_bits(
    load_without, marked, kind, options, accumulate, monkeypatch
):
    def trained():
        model = make_model()
        optimizer = kind(model.parameters(), lr=0.01, **options)
        make_trainer(
            model=model, optimizer=optimizer, accumulate=accumulate, clip_norm=0.5, max_epochs=2
        ).train()
        return model

    expected = trained()
    assert not marked
    bare = load_without(*PRIVATE)
    monkeypatch.setattr(optimizer_calls, "_is_profiling", bare._is_profiling)
    monkeypatch.setattr(optimizer_calls, "_GLOBAL_HOOKS", bare._GLOBAL_HOOKS)
    assert_same_bits(trained(), expected)
    updates = {1: 6, 2: 4}[accumulate]  # Three batches per epoch are two groups of two.
    assert Counter(marked) == {"Optimizer.step": updates, "Optimizer.zero_grad": updates}


def test_an_optimizer_that_keeps_its_hooks_elsewhere_is_stepped_by_its_own_call():
    steps = []

    class Elsewhere(torch.optim.SGD):
        def step(self, closure=None):
            steps.append("ordinary")
            return torch.optim.SGD.step.__wrapped__(self, closure)

        step.hooked = True  # So that torch does not wrap it, which reads the names below.
        step.__wrapped__ = lambda self: steps.append("direct")

    model, optimizer = make(Elsewhere)
    expected, plain = make()
    del optimizer._optimizer_step_pre_hooks
    for _ in range(3):
        for one, own in ((model, optimizer), (expected, plain)):
            zero_optimizer(own)
            backward(one)
            step_optimizer(own)
    assert steps == ["ordinary"] * 3
    assert_same_bits(model, expected)
