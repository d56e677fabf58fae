"""The message hub of a native run is filled for those who read it, and only for them."""

import pytest
import torch
from tests.tiny import make_data, make_model, make_trainer

from hookloop_mmengine import logging as mm_logging
from hookloop_mmengine.hooks import Hook, IterTimerHook, RuntimeInfoHook


class ReadHub(Hook):
    """Reads at every point what MMEngine's default hooks would have put."""

    def __init__(self):
        self.rows, self.infos, self.val = [], [], []

    def before_train(self, runner):
        hub = runner.message_hub
        self.infos.append([hub.get_info(n) for n in ("epoch", "iter", "max_epochs", "max_iters")])

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        hub = runner.message_hub
        self.infos.append([hub.get_info("epoch"), hub.get_info("iter")])
        assert hub.get_scalar("train/lr").current() == 0.05
        assert hub.get_scalar("train/data_time").current() >= 0

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        hub = runner.message_hub
        assert hub.get_scalar("train/loss").current() == outputs["loss"].item()
        assert hub.get_scalar("train/time").current() > 0
        assert hub.get_info("loop_stage") == "train"
        self.rows.append(len(hub.get_scalar("train/loss").data[0]))

    def after_val_epoch(self, runner, metrics=None):
        history = runner.message_hub.get_scalar("val/loss")
        self.val.append(history.current() == metrics["loss"])


def test_hooks_find_what_mmengines_default_hooks_would_put():
    hook = ReadHub()
    make_trainer(hooks=[hook], val_data=make_data(), max_epochs=2, run_dir="run").train()
    assert hook.infos[0] == [0, 0, 2, 6]
    assert hook.infos[1:] == [[0, 0], [0, 1], [0, 2], [1, 3], [1, 4], [1, 5]]
    assert hook.rows == [1, 2, 3, 4, 5, 6]
    assert hook.val == [True, True]


def late(runner):
    return runner.__getattribute__("message_hub")


class ReadLate(Hook):
    """Reads the hub in a way that its code does not show."""

    def after_train_epoch(self, runner):
        hub = late(runner)
        if runner.epoch == 0:
            self.first = [hub.get_info("epoch"), hub.get_info("max_iters")]
            self.loss = hub.get_scalar("train/loss").current()
        self.count = len(hub.get_scalar("train/loss").data[0])


def test_a_hub_that_is_asked_for_late_has_the_current_values():
    hook = ReadLate()
    trainer = make_trainer(hooks=[hook], max_epochs=2, run_dir="run")
    losses = []
    trainer.on("after_train_iter")(lambda run: losses.append(run.loss.item()))
    trainer.train()
    assert hook.first == [0, 6]
    assert hook.loss == losses[2]
    assert hook.count == 4


class Silent(Hook):
    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        self.runner = runner


def test_a_run_in_which_nobody_reads_the_hub_has_none():
    hook = Silent()
    trainer = make_trainer(hooks=[hook], run_dir="run")
    trainer.train()
    assert len(trainer.run.hooks) == 1
    assert "message_hub" not in vars(hook.runner)


class Reading(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.seen = make_model(), []

    def forward(self, inputs):
        self.seen.append(mm_logging.MessageHub.get_current_instance().get_info("iter"))
        return self.inner(inputs)


def test_a_model_finds_the_counters_in_the_current_hub():
    model = Reading()
    make_trainer(model=model, hooks=[Silent()], run_dir="run").train()
    assert model.seen == [0, 1, 2]


@pytest.mark.parametrize("given", [[RuntimeInfoHook], [RuntimeInfoHook, IterTimerHook]])
def test_hooks_that_the_user_gives_are_not_added_twice(given):
    hook = ReadHub()
    trainer = make_trainer(hooks=[*(kind() for kind in given), hook], run_dir="run")
    trainer.train()
    assert hook.rows == [1, 2, 3]
    assert len(trainer.run.hooks) == 3


def test_a_resumed_run_continues_the_histories():
    from hookloop.hooks import SaveCheckpoint

    def train(**options):
        hook = ReadHub()
        parts = [hook, SaveCheckpoint(every=2, keep=None)]
        make_trainer(hooks=parts, max_epochs=2, **options).train()
        return hook

    train(run_dir="run")
    hook = train(run_dir="again", resume="run/iter_4.pth")
    assert hook.rows == [5, 6]
    assert hook.infos[1] == [1, 4]
