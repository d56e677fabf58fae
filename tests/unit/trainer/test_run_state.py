"""The list of parts: what a run consists of is in it, and comes back in place."""

from dataclasses import fields

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.functional import mse_loss

from hookloop import Trainer
from hookloop.checkpoint.saving.snapshot import Snapshot
from hookloop.checkpoint.state.compare import compare
from hookloop.trainer.state.run_state import RunState

KEPT = ("model", "optimizers", "scaler", "progress", "undeclared", "gradients", "generators")

IN_PARTS = {
    *("model", "loss_function", "step_function", "scaler"),  # By themselves, or as undeclared.
    *("train_data", "metrics", "progress", "observer_randomness"),
}
"""Attributes of a run with a state, and a part that keeps it."""


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(), nn.Linear(4, 1)
        )
        self.temperature, self.past = 1.0, [1]

    def forward(self, inputs):
        return self.layers(inputs)


class Loss(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))
        self.register_buffer("center", torch.zeros(1))

    def forward(self, output, targets):
        return mse_loss(output * self.weight - self.center, targets)


def trained():
    torch.manual_seed(0)
    model, loss = Net(), Loss()
    given = torch.optim.Adam([*model.parameters(), *loss.parameters()], lr=0.1)
    data = [(torch.randn(4, 3), torch.randn(4, 1)) for _ in range(3)]
    trainer = Trainer(
        model, train_data=data, loss=loss, optimizer=given, max_iters=2, default_hooks=False
    )
    trainer.train()
    return trainer.run


def weights(run):
    for parameter in run.model.parameters():
        parameter.data.mul_(2.0)


def loss_weights(run):
    with torch.no_grad():
        run._internals.loss_function.weight += 1


def buffers(run):
    run.model.layers[1].running_mean.add_(1.0)
    run._internals.loss_function.center = torch.ones(1)  # Another object, not only another number.


def gradients(run):
    for parameter in run.model.parameters():
        parameter.grad = None if parameter.grad is None else parameter.grad + 1


def moments(run):
    for state in run.optimizer.state.values():
        state["exp_avg"].add_(1.0)


def rates(run):
    run.optimizer.param_groups[0]["lr"] = 9.0


def groups(run):
    run.optimizer.load_state_dict(run.optimizer.state_dict())  # It makes new ones.


def counters(run):
    run.progress.iter += 5


def attributes(run):
    run.model.temperature = 0.5
    run.model.past.append(2)


def modes(run):
    run.model.layers[1].eval()


def generators(run):
    torch.rand(3)


CHANGES = [
    *(weights, loss_weights, buffers, gradients, moments, rates, groups, counters, attributes),
    *(modes, generators),
]


def objects(run):
    modules = [*run.model.modules(), *run._internals.loss_function.modules()]
    return [
        *(id(one) for one in (*run.model.parameters(), *run._internals.loss_function.parameters())),
        *(id(one) for module in modules for one in module._buffers.values()),
        *(id(group) for group in run.optimizer.param_groups),
        id(run.model.past),
    ]


def everything(run):
    grads = [one.grad for one in run.model.parameters()]
    flags = [module.training for module in run.model.modules()]
    state = {**RunState(run).gather(), "grads": grads, "flags": flags}
    return Snapshot().take(state)


@pytest.mark.slow
@given(st.lists(st.sampled_from(CHANGES), min_size=1), st.sampled_from(["device", "host"]))
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_is_kept_comes_back_in_place_whatever_is_changed(changes, where):
    run = trained()
    state, own = everything(run), objects(run)
    changes = [one for one in changes if where == "device" or one is not gradients]
    with RunState(run).kept(*KEPT, where=where):
        for change in changes:
            change(run)
    assert not compare(state, everything(run))
    assert objects(run) == own


def test_each_attribute_of_a_run_with_a_state_is_in_a_part():
    run = trained()
    stateful = {
        field.name
        for owner in (run, run._internals)
        for field in fields(owner)
        if hasattr(getattr(owner, field.name), "state_dict")
    }
    assert stateful <= IN_PARTS, "give it a part in RunState, or resumes lose it"


def test_each_part_that_a_search_keeps_is_in_the_list():
    assert set(KEPT) <= {part.key for part in RunState(trained()).parts}
