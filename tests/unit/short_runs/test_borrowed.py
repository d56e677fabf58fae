"""What is done with a borrowed Trainer leaves the run as it was, to the last bit."""

import random

import torch
from tests.tiny import make_data
from torch import nn

from hookloop.checkpoint.saving.snapshot import Snapshot
from hookloop.checkpoint.state.compare import compare
from hookloop.short_runs.borrowed import borrowed
from hookloop.testing import RecordCalls, tiny_trainer
from hookloop.trainer.state.run_state import RunState


class Odd(nn.Module):
    """A module with all kinds of state."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.linear = nn.Linear(4, 3)
        self.register_buffer("hidden", torch.zeros(1), persistent=False)
        self.count = 0

    def get_extra_state(self):
        return {"count": self.count}

    def set_extra_state(self, state):
        self.count = state["count"]

    def forward(self, inputs):
        self.hidden = self.hidden + 1  # Replaced, not changed in place.
        self.count += 1
        return self.linear(self.norm(inputs))


class Lazy(nn.Module):
    """A module that makes what it needs when it is first called, from what it is called with."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 1)

    def forward(self, inputs):
        if not hasattr(self, "scale"):
            self.scale = inputs.abs().mean().item()
            self.register_buffer("shift", inputs.mean(0))
            self.inner = nn.Linear(1, 1)
        return self.inner(self.linear(inputs - self.shift) / self.scale)


def test_what_a_forward_makes_for_the_first_time_is_removed():
    def loss(output, targets):
        loss.calls = getattr(loss, "calls", 0) + 1
        return (output - targets).square().mean()

    trainer = tiny_trainer(model=(model := Lazy()), train_data=make_data(), loss=loss)
    trainer.check_hooks()
    with borrowed(trainer):
        for batches in trainer.run.train_data.groups(1):
            trainer._updates[0].make(trainer.run, batches)
        assert loss.calls == 3
    assert not any(hasattr(model, name) for name in ("scale", "shift", "inner"))
    assert not hasattr(loss, "calls")


def state_of(trainer):
    return Snapshot().take(RunState(trainer.run).gather())


def test_everything_is_set_back():
    model = Odd()
    trainer = tiny_trainer(
        RecordCalls(), model=model,
        optimizer=torch.optim.Adam(model.parameters(), lr=0.1),
        train_data=make_data(shuffle=True, generator=torch.Generator().manual_seed(3)),
        loss=lambda output, targets: output.square().mean(),
    )  # fmt: skip
    run = trainer.run
    trainer.check_hooks()
    model.linear.weight.grad = torch.ones(3, 4)
    model.norm.eval()
    before, hidden, group = state_of(trainer), model.hidden, run.optimizer.param_groups[0]
    objects = run._plan, run.metrics, run._internals.outbox, run.progress
    with borrowed(trainer):
        assert not run.hooks
        model.train()
        for batches in run.train_data.groups(1):
            trainer._updates[0].make(run, batches)
        group["lr"] = 5.0
        run.progress.iter = 9
        run.stop("a step may do that")
        torch.rand(3), random.random()
        assert not torch.equal(model.linear.weight, before["model"]["linear.weight"])
    assert compare(before, state_of(trainer)) == []
    assert model.hidden is hidden
    assert hidden.item() == 0
    assert torch.equal(model.linear.weight.grad, torch.ones(3, 4))
    assert model.linear.bias.grad is None
    assert (model.training, model.norm.training) == (True, False)
    assert run.optimizer.param_groups[0] is group
    assert (group["lr"], model.count) == (0.1, 0)
    assert (run._plan, run.metrics, run._internals.outbox, run.progress) == objects
    assert run._internals.requests.stop is None


def test_it_is_set_back_after_an_error_too():
    trainer = tiny_trainer()
    trainer.check_hooks()
    before = state_of(trainer)
    try:
        with borrowed(trainer), torch.no_grad():
            trainer.run.model[0].weight.add_(1)
            raise KeyError
    except KeyError:
        pass
    assert compare(before, state_of(trainer)) == []
