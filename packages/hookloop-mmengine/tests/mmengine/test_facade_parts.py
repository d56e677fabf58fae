"""What a hook finds in the runner: schedulers, scaler, data."""

import pytest
import torch
from tests.mmengine.parts import Net, Seen
from tests.tiny import make_data, make_model, make_trainer

from hookloop_mmengine.hooks import Hook
from hookloop_mmengine.optim import AmpOptimWrapper, ExponentialLR, OptimWrapperDict


class OwnScheduler(Hook):
    """Steps the schedulers itself, as hooks of projects do."""

    def after_train_epoch(self, runner):
        for scheduler in runner.param_schedulers:
            scheduler.step()


HALVE = {"type": "ExponentialLR", "gamma": 0.5}


def test_a_projects_own_scheduler_hook_changes_the_rate(run):
    seen = Seen()
    run(OwnScheduler(), seen, param_scheduler=HALVE, default_hooks={"param_scheduler": None})
    assert seen.rates == [0.05, 0.025, 0.025]  # The last step is past the end.


def test_without_any_such_hook_nothing_changes(run):
    seen = Seen()
    runner = run(seen, param_scheduler=HALVE, default_hooks={"param_scheduler": None})
    assert seen.rates == [0.1] * 3
    assert len(runner.param_schedulers) == 1


class TwoSteps(Net):
    def train_step(self, data, optim_wrapper):
        for name in ("a", "b"):
            loss = self(data["inputs"], mode="loss")["loss"]
            optim_wrapper[name].update_params(loss)
        return {"loss": loss}


class ByName(Hook):
    def after_train_epoch(self, runner):
        self.names = list(runner.param_schedulers)


@pytest.mark.parametrize("has_stepper", [True, False])
def test_several_optimizers_have_their_schedulers_by_name(run, has_stepper):
    model = TwoSteps()
    wrappers = OptimWrapperDict(
        a=AmpOptimWrapper(dtype="bfloat16", optimizer=torch.optim.SGD([model.linear.weight], 0.1)),
        b=AmpOptimWrapper(dtype="bfloat16", optimizer=torch.optim.SGD([model.linear.bias], 0.2)),
    )
    hook = ByName()
    run(
        hook, model=model, optim_wrapper=wrappers, param_scheduler={"a": HALVE}, limit=2,
        default_hooks={} if has_stepper else {"param_scheduler": None},
    )  # fmt: skip
    assert hook.names == ["a"]
    rates = [group["lr"] for one in wrappers.values() for group in one.param_groups]
    assert rates == ([0.05, 0.2] if has_stepper else [0.1, 0.2])


class Replace(Hook):
    def before_train_epoch(self, runner):
        if runner.epoch == 1:
            runner.param_schedulers = [ExponentialLR(runner.optim_wrapper, gamma=0.1)]


def test_schedulers_that_a_hook_sets_are_stepped(run):
    seen = Seen()
    run(Replace(), seen, param_scheduler=HALVE)
    assert seen.rates == pytest.approx([0.05, 0.005, 0.0005])


class Scaler(Hook):
    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        assert isinstance(runner.optim_wrapper, AmpOptimWrapper)
        self.scale = runner.optim_wrapper.loss_scaler.get_scale()


def test_hooks_see_the_scale_of_half_precision():
    hook = Scaler()
    trainer = make_trainer(hooks=[hook], precision="fp16", device="cpu", run_dir="run")
    trainer.train()
    assert hook.scale == trainer.run._internals.scaler.get_scale()


class SwitchIterator(Hook):
    """Goes over to other data in the middle of a pass."""

    def __init__(self, data):
        self.data, self.seen = data, []

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        if batch_idx == 1:
            loop = runner.train_loop
            loop.dataloader_iterator = type(loop.dataloader_iterator)(self.data)

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        self.seen.append(float(data_batch[0].abs().max()) > 50)


@pytest.mark.parametrize("options", [{}, {"accumulate": 2}, {"data.epoch_iters": 7}])
def test_another_iterator_is_used_from_the_next_iteration_on(options):
    big = [(torch.full((4, 4), 100.0), torch.zeros(4, 1))] * 6
    hook = SwitchIterator(big)
    model = make_model()
    make_trainer(
        model=model, hooks=[hook], train_data=make_data(samples=48), max_iters=7, run_dir="run",
        optimizer=torch.optim.SGD(model.parameters(), lr=1e-6), **options,
    ).train()  # fmt: skip
    assert hook.seen == [False, False] + [True] * 5


def test_a_runner_without_training_shows_no_schedulers(make):
    assert make().param_schedulers == []


class Names(Hook):
    def before_train(self, runner):
        self.seen = (runner.val_interval, runner.val_begin, runner.model_name)


def test_hooks_find_the_interval_of_validations_and_the_name_of_the_model(run):
    hook = Names()
    run(hook, train_cfg={"by_epoch": True, "max_epochs": 2, "val_interval": 2, "val_begin": 2})
    assert hook.seen == (2, 2, "Net")
