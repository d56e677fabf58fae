import pytest
import torch
from tests.tiny import make_model, make_trainer
from torch.optim import lr_scheduler

from hookloop import Hook
from hookloop.errors import HookError
from hookloop.hooks import ScheduleParameter
from hookloop.hooks.ending._live_settings import find_setting

SCHEDULES = {
    "LambdaLR": lambda o: lr_scheduler.LambdaLR(o, lambda step: 0.99**step),
    "CosineAnnealingLR": lambda o: lr_scheduler.CosineAnnealingLR(o, 50, eta_min=0.01),
    "CosineAnnealingWarmRestarts": lambda o: lr_scheduler.CosineAnnealingWarmRestarts(
        o, 7, eta_min=0.01
    ),
    "StepLR": lambda o: lr_scheduler.StepLR(o, 2, 0.5),
    "OneCycleLR": lambda o: lr_scheduler.OneCycleLR(o, 0.1, total_steps=40, cycle_momentum=False),
    "CyclicLR": lambda o: lr_scheduler.CyclicLR(o, 0.01, 0.1, 3, cycle_momentum=False),
    "LinearLR": lambda o: lr_scheduler.LinearLR(o, 0.1, total_iters=10),
    "PolynomialLR": lambda o: lr_scheduler.PolynomialLR(o, 40),
    "SequentialLR": lambda o: lr_scheduler.SequentialLR(
        o,
        [lr_scheduler.LinearLR(o, 0.1, total_iters=6), lr_scheduler.CosineAnnealingLR(o, 30)],
        [6],
    ),
}


def make_run(schedule=None, **options):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    made = schedule(optimizer) if schedule else None
    trainer = make_trainer(model=model, optimizer=optimizer, schedule=made, **options)
    trainer.check()
    return trainer.run


def rates(make, change_at=None, factor=4.0):
    """The learning rates of 25 steps; at one of them the rate is multiplied."""
    run, found = make_run(SCHEDULES[make], hooks=[Steps()]), []
    for step in range(25):
        if step == change_at:
            old = run.optimizer.param_groups[0]["lr"]
            find_setting(run, "optimizer.lr", old * factor).apply()
        found.append(run.optimizer.param_groups[0]["lr"])
        run.optimizer.step()
        run.schedules["default"].scheduler.step()
    return found


class Steps(Hook):
    owns = ("schedules",)
    amount, count, other, _own = 0.5, 3, "text", 1.0

    def after_train_iter(self, run):
        pass


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_change_scales_the_rest_of_a_schedule(name):
    plain, changed = rates(name), rates(name, change_at=4)
    assert changed[:4] == plain[:4]
    assert changed[4:] == pytest.approx([4 * rate for rate in plain[4:]], rel=1e-6)


def test_the_settings_of_an_optimizer_are_found_by_their_names():
    run = make_run()
    setting = find_setting(run, "optimizer.weight_decay", 0.01)
    assert (setting.old, setting.new) == (0.0, 0.01)
    setting.apply()
    find_setting(run, "optimizers.default.lr", 0.2).apply()
    find_setting(run, "optimizer.groups.0.momentum", 0.5).apply()
    group = run.optimizer.param_groups[0]
    assert (group["weight_decay"], group["lr"], group["momentum"]) == (0.01, 0.2, 0.5)


def test_a_rate_that_is_a_tensor_stays_one():
    run = make_run()
    rate = run.optimizer.param_groups[0]["lr"] = torch.tensor(0.5)
    find_setting(run, "optimizer.lr", 0.25).apply()
    assert run.optimizer.param_groups[0]["lr"] is rate
    assert rate.item() == 0.25


def test_limits_and_numbers_of_hooks_are_changed():
    run = make_run(hooks=[Steps()], max_iters=10)
    find_setting(run, "max_iters", 20).apply()
    find_setting(run, "hooks.steps.amount", 1).apply()
    find_setting(run, "hooks.steps.count", 5.0).apply()
    hook = run.hooks[0]
    assert (run.progress.max_iters, hook.amount, hook.count) == (20, 1.0, 5)
    assert (type(hook.amount), type(hook.count)) == (float, int)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("optimizer.lrr", 1, "Did you mean 'lr'"),
        ("optimizer.nesterov", 1, "is not a number"),
        ("optimizer.lr", -1, "must not be negative"),
        ("optimizer.groups.7.lr", 1, "1 parameter groups"),
        ("optimizer.groups", 1, "is not a number"),
        ("optimizers.other.lr", 1, "no optimizer 'other'"),
        ("max_epochs", 0, "whole number above 0"),
        ("max_iters", 2.5, "whole number above 0"),
        ("hooks.stps.count", 1, "Did you mean 'steps'"),
        ("hooks.steps.cuont", 1, "Did you mean 'count'"),
        ("hooks.steps.count", 1.5, "whole number"),
        ("hooks.steps.other", 1, "not a number of the hook"),
        ("hooks.steps._own", 1, "fixed when a run begins"),
        ("hooks.steps.priority", 1, "fixed when a run begins"),
        ("model.width", 1, "cannot be changed in a live run"),
    ],
)
def test_what_cannot_be_changed_is_rejected(key, value, reason):
    with pytest.raises(HookError, match=reason):
        find_setting(make_run(hooks=[Steps()]), key, value)


def test_a_change_that_would_not_last_is_rejected():
    run = make_run(hooks=[ScheduleParameter("weight_decay", start=0.0, end=1.0)])
    with pytest.raises(HookError, match="'schedule_parameter'"):
        find_setting(run, "optimizer.weight_decay", 0.1)
    run = make_run(lambda o: lr_scheduler.OneCycleLR(o, 0.1, total_steps=9), hooks=[Steps()])
    with pytest.raises(HookError, match="OneCycleLR"):
        find_setting(run, "optimizer.momentum", 0.1)
    run = make_run(lambda o: lr_scheduler.LambdaLR(o, lambda step: 0.0), hooks=[Steps()])
    with pytest.raises(HookError, match="is 0 at this place"):
        find_setting(run, "optimizer.lr", 0.1)

    class Own(lr_scheduler.LRScheduler):
        def get_lr(self):
            return [0.5]

    with pytest.raises(HookError, match="Own"):
        find_setting(make_run(Own, hooks=[Steps()]), "optimizer.lr", 0.1)


def test_groups_with_different_values_are_changed_one_by_one():
    run = make_run()
    run.optimizer.add_param_group({"params": [torch.zeros(1, requires_grad=True)], "lr": 0.7})
    with pytest.raises(HookError, match=r"\(0.1, 0.7\).*groups.0.lr"):
        find_setting(run, "optimizer.lr", 0.5)
    find_setting(run, "optimizer.groups.1.lr", 0.5).apply()
    assert [group["lr"] for group in run.optimizer.param_groups] == [0.1, 0.5]
