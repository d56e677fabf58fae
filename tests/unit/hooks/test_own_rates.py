import pytest
import torch
from tests.tiny import make_model, make_trainer
from torch.optim import lr_scheduler

from hookloop import Schedule
from hookloop.engine.hook import Hook
from hookloop.errors import HookError
from hookloop.hooks.weights.unfreeze import give_rate


def make(optimizer=None, schedule=None):
    model = make_model()
    optimizer = optimizer(model) if optimizer else torch.optim.SGD(model.parameters(), lr=0.1)
    options = {"schedule": schedule(optimizer)} if schedule else {}
    run = make_trainer(model=model, optimizer=optimizer, **options).run
    return run, {n: p for n, p in model.named_parameters() if n.startswith("0.")}


def rates(run):
    return [float(group["lr"]) for group in run.optimizer.param_groups]


def sizes(run):
    return [len(group["params"]) for group in run.optimizer.param_groups]


def test_a_part_of_a_group_becomes_a_group():
    run, first = make()
    give_rate(Hook(), run, first, 0.01)
    assert rates(run) == [0.1, 0.01] and sizes(run) == [2, 2]
    assert run.optimizer.param_groups[1]["params"] == list(first.values())


def test_a_whole_group_stays_in_its_place():
    def grouped(model):
        return torch.optim.SGD(
            [{"params": model[0].parameters()}, {"params": model[2].parameters()}], 0.1
        )

    run, first = make(grouped)
    give_rate(Hook(), run, first, 0.01)
    assert rates(run) == [0.01, 0.1] and sizes(run) == [2, 2]


@pytest.mark.parametrize(("rate", "expected"), [(None, [0.1, 0.1]), (0.01, [0.1, 0.01])])
def test_what_no_optimizer_has_is_added(rate, expected):
    run, first = make(lambda model: torch.optim.SGD(model[2].parameters(), lr=0.1, momentum=0.9))
    give_rate(Hook(), run, first, rate)
    assert rates(run) == expected
    assert run.optimizer.param_groups[1]["momentum"] == 0.9


def test_it_must_be_clear_to_which_optimizer_it_is_added():
    model = make_model()
    optimizers = {
        n: torch.optim.SGD([p], 0.1) for n, p in zip("ab", model[2].parameters(), strict=True)
    }
    run = make_trainer(
        model=model, optimizer=optimizers, step=dict.fromkeys("ab", lambda run, batch: None)
    ).run
    with pytest.raises(HookError, match="none of the optimizers a, b"):
        give_rate(Hook(), run, {"0.weight": model[0].weight}, 0.1)


SCHEDULES = {
    "step": lambda o: lr_scheduler.StepLR(o, 2, 0.5),
    "cosine": lambda o: lr_scheduler.CosineAnnealingLR(o, 10),
    "lambda": lambda o: lr_scheduler.LambdaLR(o, lambda n: 1 / (n + 1)),
    "warm-up": lambda o: lr_scheduler.LinearLR(o, 0.1, total_iters=4),
    "sequence": lambda o: lr_scheduler.SequentialLR(
        o, [lr_scheduler.LinearLR(o, 0.1, total_iters=3), lr_scheduler.StepLR(o, 2, 0.5)], [3]
    ),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_acts_on_the_new_group_as_on_one_that_was_there(name):
    run, first = make(schedule=SCHEDULES[name])
    give_rate(Hook(), run, first, 0.01)

    def grouped(model):
        return torch.optim.SGD(
            [{"params": model[2].parameters()}, {"params": model[0].parameters(), "lr": 0.01}], 0.1
        )

    other, _ = make(grouped, SCHEDULES[name])
    for count in range(1, 8):
        assert rates(run) == pytest.approx(rates(other)), count
        for one in (run, other):
            one.optimizer.step()
            one.schedules["default"].scheduler.step()


def test_a_schedule_on_a_metric_follows_too():
    run, first = make(
        schedule=lambda o: Schedule(
            lr_scheduler.ReduceLROnPlateau(o, patience=0), metric="val/loss"
        )
    )
    give_rate(Hook(), run, first, 0.01)
    for _ in range(3):
        run.schedules["default"].step_on(1.0)
    assert rates(run) == pytest.approx([0.1 * 0.1**2, 0.01 * 0.1**2])


def test_a_schedule_that_cannot_take_a_group_is_rejected():
    run, first = make(schedule=lambda o: lr_scheduler.OneCycleLR(o, 0.1, total_steps=9))
    with pytest.raises(HookError, match="OneCycleLR"):
        give_rate(Hook(), run, first, 0.01)


def test_a_rate_that_is_a_tensor_is_not_shared():
    run, first = make(lambda model: torch.optim.Adam(model.parameters(), lr=torch.tensor(0.1)))
    give_rate(Hook(), run, first, 0.01)
    assert rates(run) == pytest.approx([0.1, 0.01])
