"""MMEngine's own hooks in a native Trainer, without its runner."""

from pathlib import Path

import pytest
from tests.tiny import assert_same_bits, make_data, make_trainer

from hookloop_mmengine import hooks
from hookloop_mmengine.catalogue import CATALOGUE

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


def test_every_hook_of_mmengine_is_listed():
    own = {name for name in hooks.__all__ if name != "Hook"}
    assert set(CATALOGUE) == own
    for name, path in CATALOGUE.items():
        assert path == f"hookloop_mmengine.hooks:{name}"


def test_all_run_together():
    train(*(MAKE.get(name, getattr(hooks, name))() for name in USABLE))
    assert Path("run/epoch_2.pth").is_file()


def test_a_subclass_of_a_catalogued_hook_adds_its_methods():
    calls = []

    class Noting(hooks.CheckpointHook):
        def after_train_epoch(self, runner):
            calls.append(runner.epoch)

    train(Noting(interval=2))
    assert calls == [0, 1]
    assert sorted(path.name for path in Path("run").glob("*.pth")) == ["epoch_2.pth"]
