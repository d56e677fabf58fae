"""A schedule whose numbers are meant in another unit is reported before the training."""

import math
import random

import pytest
import torch
from torch.optim import lr_scheduler as schedulers
from torch.optim.swa_utils import SWALR

from hookloop import Hook, Trainer
from hookloop.errors import MetricError
from hookloop.hooks import StepSchedules
from hookloop.lr_schedule import Schedule
from hookloop.trainer.schedule_curve import curves_of, judge_schedules

WARM_UP = 100


def warm_up(step):
    return min(1, (step + 1) / WARM_UP)


def cosine(step):
    return 0.5 * (1 + math.cos(math.pi * step / 1000))


def make(build, every=1, epochs=100, *, batches=10, hooks=None, metric=None, **options):
    """A trainer of 10 iterations per epoch."""
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = build(optimizer)
    own = isinstance(scheduler, schedulers.LRScheduler | schedulers.ReduceLROnPlateau)
    trainer = Trainer(
        model,
        train_data=[(torch.ones(4, 4), torch.ones(4, 1))] * batches,
        optimizer=optimizer,
        loss=torch.nn.functional.mse_loss,
        schedule=Schedule(scheduler, every=every, metric=metric) if own else scheduler,
        max_epochs=epochs,
        default_hooks=False,
        hooks=[StepSchedules()] if hooks is None else hooks,
        **options,
    )
    trainer.check_hooks()
    return trainer


def problem(*args, **options):
    (curve,) = curves_of(make(*args, **options).run)
    return curve.problem


def sequence(optimizer, first, rest):
    parts = [schedulers.LinearLR(optimizer, 0.1, 1, first), rest]
    return schedulers.SequentialLR(optimizer, parts, [first])


WRONG = {
    "steps meant in epochs": (lambda o: schedulers.StepLR(o, 10), 1, "iteration 70 of 1000"),
    "cosine in epochs": (lambda o: schedulers.CosineAnnealingLR(o, 100), 1, "iteration 100 of"),
    "milestones in epochs": (lambda o: schedulers.MultiStepLR(o, [30, 60]), 1, "iteration 60 of"),
    "exponential": (lambda o: schedulers.ExponentialLR(o, 0.9), 1, "of 1000"),
    "polynomial": (lambda o: schedulers.PolynomialLR(o, 100), 1, "iteration 100 of"),
    "after a warm-up": (
        lambda o: sequence(o, 20, schedulers.CosineAnnealingLR(o, 80)),
        1,
        "iteration 100 of",
    ),
    "one cycle too short": (
        lambda o: schedulers.OneCycleLR(o, 0.1, total_steps=100),
        1,
        "after iteration 100 of",
    ),
    "one cycle too long": (
        lambda o: schedulers.OneCycleLR(o, 0.1, total_steps=9000),
        1,
        "end at iteration 9000",
    ),
    "iterations stepped by epochs": (
        lambda o: schedulers.CosineAnnealingLR(o, 1000),
        "1 epoch",
        "end at epoch 1000",
    ),
    "one cycle cut in the middle": (
        lambda o: schedulers.OneCycleLR(o, 0.1, total_steps=2000),
        1,
        "end at iteration 2000",
    ),
    "a fall in epochs": (
        lambda o: schedulers.LinearLR(o, 1, 0.01, total_iters=100),
        1,
        "iteration 100 of",
    ),
    "below zero": (lambda o: schedulers.LambdaLR(o, lambda s: 1 - s / 100), 1, "iteration 101 of"),
    "steps in iterations, by epochs": (
        lambda o: schedulers.StepLR(o, 1000),
        "1 epoch",
        "change at epoch 1000",
    ),
    "every second iteration": (lambda o: schedulers.StepLR(o, 10), 2, "iteration 140 of 1000"),
}

RIGHT = {
    "steps in epochs": (lambda o: schedulers.StepLR(o, 30), "1 epoch"),
    "steps in iterations": (lambda o: schedulers.StepLR(o, 300), 1),
    "warm-up and constant": (lambda o: schedulers.LinearLR(o, 0.01, 1, 10), 1),
    "constant": (lambda o: schedulers.ConstantLR(o, 0.1, 5), 1),
    "cosine to the end": (lambda o: schedulers.CosineAnnealingLR(o, 1000), 1),
    "cosine nearly to the end": (lambda o: schedulers.CosineAnnealingLR(o, 900), 1),
    "cycles of a cosine": (lambda o: schedulers.CosineAnnealingLR(o, 200), 1),
    "cycles by epochs": (lambda o: schedulers.CosineAnnealingLR(o, 20), "1 epoch"),
    "a fall that holds": (lambda o: schedulers.LinearLR(o, 1, 0.1, total_iters=600), 1),
    "cosine by epochs": (lambda o: schedulers.CosineAnnealingLR(o, 100), "1 epoch"),
    "polynomial to the end": (lambda o: schedulers.PolynomialLR(o, 1000), 1),
    "one cycle": (lambda o: schedulers.OneCycleLR(o, 0.1, total_steps=1000), 1),
    "cyclic": (lambda o: schedulers.CyclicLR(o, 1e-9, 0.1, 100), 1),
    "restarts": (lambda o: schedulers.CosineAnnealingWarmRestarts(o, 50), 1),
    "late milestones": (lambda o: schedulers.MultiStepLR(o, [500, 750]), 1),
    "a warm-up before": (lambda o: sequence(o, 50, schedulers.CosineAnnealingLR(o, 950)), 1),
    "chained": (
        lambda o: schedulers.ChainedScheduler(
            [schedulers.LinearLR(o), schedulers.ExponentialLR(o, 0.999)]
        ),
        1,
    ),
    "a function": (lambda o: schedulers.LambdaLR(o, warm_up), 1),
    "a cosine of the user": (lambda o: schedulers.LambdaLR(o, cosine), 1),
    "for averaged weights": (lambda o: SWALR(o, 0.01), 1),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_schedule_in_another_unit_is_found_with_the_iteration_and_two_ways_out(name):
    build, every, when = WRONG[name]
    found = problem(build, every)
    assert when in found
    assert ("If " in found and "epoch" in found) or "Train longer" in found


@pytest.mark.parametrize("kind", ["CosineAnnealingLR", "OneCycleLR"])
def test_a_schedule_over_batches_where_an_iteration_takes_several_is_found(kind):
    def build(optimizer):
        if kind == "CosineAnnealingLR":
            return schedulers.CosineAnnealingLR(optimizer, 1000)
        return schedulers.OneCycleLR(optimizer, 0.1, epochs=100, steps_per_epoch=10)

    assert "ends at iteration 500: " in problem(build, accumulate=2)


@pytest.mark.parametrize("name", RIGHT)
def test_a_schedule_that_fits_is_not_reported(name):
    build, every = RIGHT[name]
    assert problem(build, every) == ""


class OwnScheduler(schedulers.LRScheduler):
    def get_lr(self):
        raise AssertionError("it must not be stepped ahead of time")

    def _initial_step(self):
        self._step_count, self.last_epoch = 1, 0


class Draws:
    def __call__(self, step):
        return random.random()


def counted():
    numbers = iter(range(10_000))
    return lambda step: next(numbers)


UNKNOWN = {
    "a metric": (schedulers.ReduceLROnPlateau, {"metric": "train/loss"}),
    "a class of the user": (OwnScheduler, {}),
    "a function that counts": (lambda o: schedulers.LambdaLR(o, counted()), {}),
    "a function that draws": (lambda o: schedulers.LambdaLR(o, Draws()), {}),
    "no known length": (lambda o: schedulers.StepLR(o, 10), {"epochs": None}),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_nothing_is_said_of_what_cannot_be_known(name):
    build, options = UNKNOWN[name]
    assert curves_of(make(build, **options).run) == []


def test_a_hook_of_ones_own_may_step_as_it_likes():
    class StepSometimes(Hook):
        owns = ("schedules",)

    build = WRONG["steps meant in epochs"][0]
    assert curves_of(make(build, hooks=[StepSometimes()]).run) == []


@pytest.mark.slow
def test_looking_ahead_changes_nothing_and_is_cheap_for_long_runs():
    for build, every in [*RIGHT.values(), *(one[:2] for one in WRONG.values())]:
        trainer = make(build, every, epochs=100_000)
        (schedule,) = trainer.run.schedules.values()
        before = repr(schedule.scheduler.state_dict()), repr(trainer.run.optimizer.state_dict())
        state = torch.get_rng_state()
        (curve,) = curves_of(trainer.run)
        assert len(curve.points) <= 5001
        after = repr(schedule.scheduler.state_dict()), repr(trainer.run.optimizer.state_dict())
        assert before == after
        assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(
    "build",
    [
        lambda o: schedulers.CosineAnnealingLR(o, 3000),
        lambda o: schedulers.OneCycleLR(o, 0.1, total_steps=3000),
        lambda o: sequence(o, 100, schedulers.StepLR(o, 700)),
        lambda o: schedulers.LambdaLR(o, warm_up),
    ],
)
def test_computed_rates_are_those_that_the_training_has(build):
    (curve,) = curves_of(make(build, epochs=300).run)
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1, momentum=0.9)
    scheduler = build(optimizer)
    rates = [optimizer.param_groups[0]["lr"]]
    for _ in range(3000):
        optimizer.step()
        scheduler.step()
        rates.append(optimizer.param_groups[0]["lr"])
    assert curve.rates == pytest.approx([rates[point] for point in curve.points], rel=1e-6)


def test_it_is_reported_before_the_training_and_once(caplog):
    seen = []

    class Look(Hook):
        def before_train(self, run):
            seen.append(list(caplog.messages))

    trainer = make(lambda o: schedulers.StepLR(o, 2), epochs=10, hooks=[StepSchedules(), Look()])
    trainer.train()
    trainer.train(max_epochs=12)
    assert ["StepLR" in one for one in seen[0]] == [True]
    assert seen[0] == caplog.messages


def test_a_part_of_a_training_may_be_much_shorter_than_its_schedule(caplog):
    trainer = make(lambda o: schedulers.CosineAnnealingLR(o, 1000))
    trainer.train(max_epochs=1)
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("build", "every", "metric", "named"),
    [
        (lambda o: schedulers.CosineAnnealingLR(o, 1000, eta_min=0.5), 1, None, "eta_min=0.5"),
        (lambda o: schedulers.StepLR(o, 300, gamma=10), 1, None, "gamma=10"),
        (lambda o: schedulers.LambdaLR(o, lambda step: 0.0), 1, None, "at 0"),
        (lambda o: schedulers.LinearLR(o, total_iters=6000), 1, None, "total_iters=6000"),
        (lambda o: schedulers.StepLR(o, 1), "300 epochs", None, "never stepped"),
        (schedulers.ReduceLROnPlateau, 1, "val/accuracy", "mode='max'"),
        (lambda o: schedulers.ReduceLROnPlateau(o, mode="max"), 1, "val/loss", "mode='min'"),
        (lambda o: schedulers.ReduceLROnPlateau(o, mode="max"), 1, "val/accuracy", None),
        (schedulers.ReduceLROnPlateau, 1, "val/loss", None),
        (lambda o: schedulers.StepLR(o, 300, gamma=0.1), 1, None, None),
    ],
)
def test_a_schedule_that_does_the_opposite_or_nothing_is_reported(build, every, metric, named):
    data = [(torch.ones(4, 4), torch.ones(4, 1))]
    metrics = {"accuracy": lambda output, targets: output.mean()}
    trainer = make(build, every, metric=metric, val_data=data, metrics=metrics)
    found = judge_schedules(trainer.run)
    assert [named in one for one in found] == [True] * (named is not None)


@pytest.mark.parametrize("metric", ["val/los", "val/loss"])
def test_a_schedule_of_a_metric_that_nobody_produces_is_rejected_before_training(metric):
    val_data = [(torch.ones(4, 4), torch.ones(4, 1))] if metric == "val/los" else None
    with pytest.raises(MetricError, match=metric):
        make(schedulers.ReduceLROnPlateau, metric=metric, val_data=val_data)
