"""Hooks of MMEngine that are native hooks under another name."""

import pytest
from tests.mmengine.parts import Scripted, Seen

from hookloop import hooks as native
from hookloop_mmengine.hooks import (
    DistSamplerSeedHook,
    EmptyCacheHook,
    ParamSchedulerHook,
    SyncBuffersHook,
)


@pytest.mark.parametrize(
    ("hook", "kind"),
    [
        (ParamSchedulerHook(), native.StepSchedules),
        (DistSamplerSeedHook(), native.SetSamplerEpoch),
        (SyncBuffersHook(), native.SyncBuffers),
        (EmptyCacheHook(), native.EmptyCache),
    ],
)
def test_each_is_a_native_hook(hook, kind):
    (made,) = hook.native_hooks()
    assert isinstance(made, kind)


def test_an_empty_cache_hook_that_does_nothing_is_none():
    assert EmptyCacheHook(after_epoch=False).native_hooks() == []


HALVE = {"type": "StepLR", "step_size": 1, "gamma": 0.5}


def test_schedulers_step_after_each_epoch(run):
    seen = Seen()
    run(seen, param_scheduler=HALVE)
    assert seen.rates == [0.05, 0.025, 0.025]  # A schedule ends with the training.


def test_schedulers_step_after_each_iteration(run):
    seen = Seen()
    run(seen, limit=2, param_scheduler={**HALVE, "by_epoch": False})
    assert seen.rates == [0.025, 0.0125]


def test_a_subclass_decides_when_schedulers_step(run):
    class EverySecond(ParamSchedulerHook):
        def after_train_epoch(self, runner):
            if self.every_n_epochs(runner, 2):
                super().after_train_epoch(runner)

    seen = Seen()
    run(seen, default_hooks={"param_scheduler": EverySecond()}, param_scheduler=HALVE, limit=4)
    assert seen.rates == [0.1, 0.05, 0.05, 0.025]


def test_a_subclass_that_overrides_nothing_of_it_steps_once(run):
    class Named(ParamSchedulerHook):
        def before_train(self, runner):
            self.began = True

    seen, named = Seen(), Named()
    run(seen, default_hooks={"param_scheduler": named}, param_scheduler=HALVE)
    assert seen.rates == [0.05, 0.025, 0.025]
    assert named.began


def test_without_the_hook_nothing_steps(run):
    seen = Seen()
    run(seen, default_hooks={"param_scheduler": None}, param_scheduler=HALVE)
    assert seen.rates == [0.1, 0.1, 0.1]


class Same(ParamSchedulerHook):
    def after_val_epoch(self, runner, metrics=None):
        super().after_val_epoch(runner, metrics)


@pytest.mark.parametrize("hook", [ParamSchedulerHook, Same])
def test_a_scheduler_on_a_metric_steps_after_each_validation(run, hook):
    seen = Seen()
    plateau = {"type": "ReduceOnPlateauLR", "monitor": "loss", "patience": 1, "factor": 0.5}
    losses = [{"loss": value} for value in (1, 1, 1, 1, 0.5, 0.5)]
    run(
        seen,
        limit=6,
        default_hooks={"param_scheduler": hook()},
        param_scheduler=plateau,
        val_evaluator=[Scripted(*losses)],
    )
    # The third loss is the second bad one; the rate is seen one epoch later.
    assert seen.rates == [0.1, 0.1, 0.1, 0.05, 0.05, 0.05]


def test_a_missing_metric_is_an_error(run):
    plateau = {"type": "ReduceOnPlateauLR", "monitor": "zebra"}
    with pytest.raises(Exception, match="zebra"):
        run(param_scheduler=plateau, val_evaluator=[Scripted({"loss": 1.0})])


def test_samplers_get_the_epoch(run):
    from tests.mmengine.parts import Numbers, make_loader
    from torch.utils.data import SequentialSampler

    class Sampler(SequentialSampler):
        def __init__(self, data):
            super().__init__(data)
            self.epochs = []

        def set_epoch(self, epoch):
            self.epochs.append(epoch)

    sampler = Sampler(Numbers())
    run(train_dataloader=make_loader(sampler=sampler))
    assert sampler.epochs == [0, 1, 2]
