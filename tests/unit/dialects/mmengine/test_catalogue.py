"""MMEngine's own hooks in a native Trainer, without its runner."""

import logging
from pathlib import Path

import pytest
import torch
from tests.tiny import assert_same_bits, make_data, make_model, make_trainer

from hookloop.dialects.mmengine import hooks
from hookloop.dialects.mmengine.catalogue import CATALOGUE
from hookloop.errors import HookError

MAKE = {
    "CheckpointHook": lambda: hooks.CheckpointHook(interval=1),
    "EarlyStoppingHook": lambda: hooks.EarlyStoppingHook("loss"),
    "ProfilerHook": lambda: hooks.ProfilerHook(json_trace_path="trace.json"),
    "PrepareTTAHook": lambda: hooks.PrepareTTAHook({"type": "Unused"}),
}
USABLE = sorted(set(CATALOGUE) - {"NPUProfilerHook"})


def train(*own, **options):
    parts = {"val_data": make_data(), "max_epochs": 2, "run_dir": "run"}
    trainer = make_trainer(hooks=own, **(parts | options))
    trainer.train()
    return trainer


@pytest.mark.parametrize("name", USABLE)
def test_each_runs_and_leaves_the_training_as_it_is(name):
    hook = MAKE.get(name, getattr(hooks, name))()
    trained = train(hook).run.model
    assert_same_bits(trained, train(run_dir="without").run.model)


def test_all_run_together():
    train(*(MAKE.get(name, getattr(hooks, name))() for name in USABLE))
    assert Path("run/epoch_2.pth").is_file()


def test_an_npu_is_not_there():
    with pytest.raises(HookError, match="ProfileOperators"):
        hooks.NPUProfilerHook()


def test_the_log_says_what_mmengine_says(caplog):
    caplog.set_level(logging.INFO, logger="hookloop")
    train(hooks.RuntimeInfoHook(), hooks.IterTimerHook(), hooks.LoggerHook(interval=1))
    assert "Epoch(train) [1][1/3]  lr: 5.0000e-02" in caplog.text
    assert "Epoch(val) [2][3/3]    loss: " in caplog.text


def test_a_subclass_of_a_catalogued_hook_acts_besides():
    calls = []

    class Telling(hooks.CheckpointHook):
        def after_train_epoch(self, runner):
            calls.append(runner.epoch)

    train(Telling(interval=2))
    assert calls == [0, 1]
    assert sorted(path.name for path in Path("run").glob("*.pth")) == ["epoch_2.pth"]


def test_the_message_hub_is_resumed():
    def make(epochs, **options):
        parts = [hooks.RuntimeInfoHook(), hooks.CheckpointHook(interval=1)]
        return train(*parts, max_epochs=epochs, val_data=None, **options)

    make(1)
    (facade,) = make(2, resume=True).run.facades.values()
    assert len(facade.message_hub.get_scalar("train/loss").data[0]) == 6


def test_averaged_weights_are_published():
    hook = hooks.CheckpointHook(interval=1, published_keys=["state_dict"])
    trainer = train(hook, model=make_model())
    (published,) = Path("run").glob("epoch_2-*.pth")
    weights = torch.load(published, weights_only=True)["state_dict"]
    assert torch.equal(weights["0.weight"], trainer.run.model.state_dict()["0.weight"])


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ({"save_begin": -1}, ValueError),
        ({"save_best": ["auto", "acc"]}, AssertionError),
        ({"save_best": ["acc", "acc"]}, AssertionError),
        ({"save_best": "zebra"}, ValueError),
        ({"save_best": "acc", "rule": "more"}, KeyError),
        ({"save_best": ["acc", "loss"], "rule": ["less", "less", "less"]}, AssertionError),
        ({"published_keys": 3}, TypeError),
        ({"backend_args": {}}, ValueError),
    ],
)
def test_a_wrong_checkpoint_hook_is_refused_at_once(said, error):
    with pytest.raises(error):
        hooks.CheckpointHook(**said)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: hooks.EMAHook(begin_iter=1, begin_epoch=1), AssertionError),
        (lambda: hooks.EMAHook(ema_type="Mine"), HookError),
        (lambda: hooks.EMAHook(momentun=0.1), TypeError),
        (lambda: hooks.LoggerHook(interval=0), ValueError),
        (lambda: hooks.LoggerHook(interval="1"), TypeError),
        (lambda: hooks.ProfilerHook(profile_times=2), ValueError),
        (lambda: hooks.ProfilerHook(on_trace_ready={"type": "x"}), ValueError),
        (lambda: hooks.EarlyStoppingHook("zebra"), ValueError),
    ],
)
def test_wrong_arguments_are_refused_as_there(make, error):
    with pytest.raises(error):
        make()


def test_averaging_that_would_never_begin_is_refused():
    with pytest.raises(AssertionError, match="begins after the end"):
        train(hooks.EMAHook(begin_epoch=9))
