"""A number of a hook, the model or the loss follows its values along the run."""

import pytest
import torch
from tests.tiny import assert_same_bits, make_data, make_model, make_trainer, record

from hookloop.engine.hook import Hook
from hookloop.errors import HookError
from hookloop.hooks import SaveCheckpoint, ScheduleAttribute


class Noise(Hook):
    """Adds noise to inputs."""

    takes_part_in_training = True

    def __init__(self):
        self.amount = 1.0
        self.text = "much"

    def before_forward(self, run):
        inputs, targets = run.batch
        run.batch = inputs + self.amount * torch.randn_like(inputs), targets


def values_of(hook, target, get, **options):
    note, calls = record(["before_train_iter"], get)
    trainer = make_trainer(hooks=[note, *target, hook], max_epochs=3, **options)
    trainer.train()
    return [round(value, 6) for _, value in calls]


@pytest.mark.parametrize(
    ("values", "how", "expected"),
    [
        ({0: 1, 2: 0.5, 5: 0}, "step", [1, 1, 0.5, 0.5, 0.5, 0, 0, 0, 0]),
        ({0: 1, 4: 0}, "linear", [1, 0.75, 0.5, 0.25, 0, 0, 0, 0, 0]),
        ({0: 1, "1 epoch": 3}, "step", [1, 1, 1, 3, 3, 3, 3, 3, 3]),
        ({0: 1, "2 epochs": 3}, "linear", [1, 1, 1, 2, 2, 2, 3, 3, 3]),
        ({0: 1, "8 samples": 2}, "step", [1, 1, 2, 2, 2, 2, 2, 2, 2]),
        ({0: 7}, "linear", [7] * 9),
    ],
)
def test_the_value_follows_what_is_completed(values, how, expected):
    noise = Noise()
    hook = ScheduleAttribute("noise.amount", values, how)
    assert values_of(hook, [noise], lambda run: noise.amount) == expected


def test_parts_of_the_model_and_of_the_loss_are_set_too():
    model = torch.nn.Sequential(make_model(), torch.nn.Dropout(0.5))
    hook = ScheduleAttribute("model.1.p", {0: 0.5, 3: 0.0})
    assert values_of(hook, [], lambda run: model[1].p, model=model)[2:4] == [0.5, 0]
    loss = torch.nn.HuberLoss(delta=1.0)
    hook = ScheduleAttribute("loss.delta", {0: 2, 3: 0.5}, "linear")
    seen = values_of(hook, [], lambda run: loss.delta, loss=loss)
    assert seen[:4] == [2, 1.5, 1.0, 0.5]


def test_a_hook_is_found_by_the_name_it_was_given():
    first, second = Noise().named("noise"), Noise().named("noise.late")
    hook = ScheduleAttribute("noise.late.amount", {0: 4})
    assert values_of(hook, [first, second], lambda run: second.amount) == [4] * 9
    assert first.amount == 1


@pytest.mark.parametrize("cut", [1, 2, 3, 5])
def test_a_resume_is_exact(cut, tmp_path):
    def train(directory, **options):
        trainer = make_trainer(
            train_data=make_data(shuffle=True), seed=2, run_dir=directory, max_epochs=2,
            hooks=[
                Noise(), SaveCheckpoint(every=None),
                ScheduleAttribute("noise.amount", {0: 1.0, 4: 0.1}, "linear"),
            ], **options,
        )  # fmt: skip
        trainer.train()
        return trainer.run.model

    whole = train(tmp_path / "whole")
    train(tmp_path / "cut", max_iters=cut)
    assert_same_bits(whole, train(tmp_path / "cut", resume=True))


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ("nose.amount", "begins with no hook of this run.*Did you mean 'noise'"),
        ("noise", "begins with no hook"),
        ("noise.amuont", r"'noise' \(Noise\) has no attribute 'amuont'. Did you mean 'amount'"),
        ("noise.amount.x", r"'noise.amount' \(float\) has no attribute 'x'"),
        ("noise.text", "'noise.text' is str, not a number"),
        ("noise._seen", "has no attribute '_seen'"),
        ("model.7.p", r"'model' \(Sequential\) has no attribute '7'"),
        ("loss.delta", "'loss' .* has no attribute 'delta'"),
    ],
)
def test_what_is_not_there_is_rejected_at_the_start(attribute, message):
    for begin in ("check", "train"):
        hook = ScheduleAttribute(attribute, {0: 1})
        trainer = make_trainer(hooks=[Noise(), hook])
        with pytest.raises(HookError, match=message):
            getattr(trainer, begin)()
        assert trainer.run.progress.iter == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (({0: 1}, "liner"), "write step or linear. Did you mean 'linear'"),
        (({5: 1},), "the value at the start is missing"),
        (({0: 1, 5: 2, "1 epoch": 3},), "in epochs and iters: write all in one unit"),
        (({0: "much"},), "'much' is not a number"),
        (({0: 1, "3 min": 2},), "is a time"),
    ],
)
def test_values_that_cannot_be_meant_are_rejected(arguments, message):
    with pytest.raises(HookError, match=message):
        ScheduleAttribute("noise.amount", *arguments)
