"""What iMIX's hooks are and hold."""

import pytest
import torch
from tests.imix.tracing import train
from tests.imix.updating import ScaleItself, StepItself, by_hand, parts
from tests.tiny import assert_same_bits

from hookloop.errors import HookError
from hookloop.hooks import SaveCheckpoint
from hookloop_dialects.imix import HookBase, engine
from hookloop_dialects.imix.held import makes_update, restore_parts, save_parts, stateful_parts


class Anneal(HookBase):
    """Steps a scheduler that it holds without a state of its own, as iMIX's own hook."""

    def __init__(self, scheduler):
        self.scheduler = scheduler

    def after_train_iter(self):
        self.scheduler.step()


class Declared(HookBase):
    makes_update = True


class OptimizerHook(HookBase):
    """A project's copy of iMIX's class, under the same name."""


@pytest.mark.parametrize(
    ("hook", "answer"),
    [
        (StepItself(), True),
        (Declared(), True),
        (OptimizerHook(), True),
        (engine.hooks.TextLoggerHook(), False),
        (Anneal(None), False),
    ],
)
def test_a_hook_that_makes_the_update_is_recognized(hook, answer):
    assert makes_update(hook) is answer


def test_a_declaration_wins_over_the_code():
    hook = StepItself()
    hook.makes_update = False
    assert not makes_update(hook)


def test_scalers_and_schedulers_are_saved_and_restored():
    def holding(scale):
        hook, optimizer = HookBase(), parts()["optimizer"]
        hook.scaler = torch.amp.GradScaler("cpu", init_scale=scale)
        hook.idle = torch.amp.GradScaler("cpu", enabled=False)
        hook.scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        hook.other = 3
        return hook

    first, second = holding(8.0), holding(2.0)
    optimizer = first.scheduler.optimizer
    optimizer.step()
    first.scheduler.step()
    assert set(stateful_parts(first)) == {"scaler", "idle", "scheduler"}
    restore_parts(second, save_parts(first))
    assert second.scaler.get_scale() == 8.0
    assert second.scheduler.last_epoch == 1


@pytest.mark.parametrize(("kind", "cut"), [(StepItself, 2), (ScaleItself, 4)])
def test_a_resume_within_a_group_ends_with_the_same_bits(kind, cut, tmp_path):
    def run(iters, directory, **options):
        own, hook = parts(), kind()
        hooks = [hook, engine.hooks.LRSchedulerHook(own["optimizer"], _schedule(own))]
        train(
            directory, *hooks, SaveCheckpoint(every="2 iters"), max_iters=iters,
            setup={"config": {"gradient_accumulation_steps": 3}}, **own, **options,
        )  # fmt: skip
        return own["model"], hook

    whole, _ = run(8, tmp_path / "whole")
    run(cut, tmp_path / "cut")
    continued, hook = run(8, tmp_path / "cut", resume=True)
    assert_same_bits(whole, continued)
    if kind is StepItself:
        assert_same_bits(whole, by_hand(8, 3, gamma=0.5)[0])
    else:
        assert hook.scaler.get_scale() == 128.0  # Grown once, after the second update.


def _schedule(own):
    return torch.optim.lr_scheduler.ExponentialLR(own["optimizer"], 0.5)


def test_a_scheduler_without_a_state_in_its_hook_continues(tmp_path):
    def run(epochs, **options):
        own = parts()
        hook = Anneal(_schedule(own))
        train(tmp_path, hook, SaveCheckpoint(), max_epochs=epochs, **own, **options)
        return hook.scheduler.last_epoch

    assert run(1) == 3
    assert run(2, resume=True) == 6


def test_a_scheduler_that_the_trainer_steps_is_rejected(tmp_path):
    own = parts()
    scheduler = _schedule(own)
    with pytest.raises(HookError, match="'anneal' steps the scheduler in its attribute"):
        train(tmp_path, Anneal(scheduler), schedule=scheduler, default_hooks=None, **own)
