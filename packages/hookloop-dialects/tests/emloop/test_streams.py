"""The streams that emloop's hooks name, whatever they are called here."""

import pytest
from tests.tiny import make_data, make_trainer

from hookloop.errors import HookError
from hookloop.hooks import ComputeStats
from hookloop_dialects.emloop import AbstractHook, hooks
from hookloop_dialects.emloop.streams import Streams


def make(tmp_path, *some, **options):
    defaults = {"run_dir": tmp_path / "run", "val_data": make_data(8), "max_epochs": 2}
    trainer = make_trainer(hooks=list(some), **(defaults | options))
    for hook in some:
        if isinstance(hook, hooks.SaveBest):
            hook._model = trainer.run.model  # As a config passes it.
    return trainer


@pytest.mark.parametrize(
    ("named", "ours"),
    [(named, ours) for named in ("valid", "val") for ours in ("", "val", "valid", "dev")]
    + [("dev", "dev")],
)
def test_the_only_validation_stream_is_found(tmp_path, named, ours):
    data = {ours: make_data(8)} if ours else make_data(8)
    best = hooks.SaveBest(model=None, stream=named)
    make(tmp_path, ComputeStats(["loss"]), best, val_data=data).train()
    assert (tmp_path / "run" / "model_best.pth").is_file()


@pytest.mark.parametrize(
    ("hook", "data", "listed"),
    [
        (hooks.SaveBest(model=None, stream="vaild"), None, "Did you mean 'valid'?.*valid, train"),
        (hooks.SaveBest(model=None), {"a": 0, "b": 0}, "There are: a, b, train"),
        (hooks.SaveBest(model=None, stream="test"), None, "val_data: {test: ...}"),
        (hooks.Flatten({"inputs": "flat"}, ["train", "tset"]), None, "'tset', which"),
    ],
)
def test_an_unknown_stream_is_rejected_before_training(tmp_path, hook, data, listed):
    streams = make_data(8) if data is None else {name: make_data(8) for name in data}
    trainer = make(
        tmp_path, ComputeStats(["loss"]), hook, val_data=streams, data={"test": make_data(8)}
    )
    with pytest.raises(HookError, match=f"names the stream .*{listed}"):
        trainer.train()
    assert trainer.run.progress.iter == 0


def test_hooks_wait_for_an_epoch_in_which_their_stream_is_evaluated(tmp_path):
    seen = []

    class Best(hooks.SaveBest):
        def _is_value_better(self, value):
            seen.append(self._main_loop.training_epochs_done)
            return False

    Best.__module__ = hooks.SaveBest.__module__
    best, plateau = Best(model=None), hooks.StopOnPlateau(long_term=2, short_term=1)
    make(
        tmp_path, ComputeStats(["loss"]), best, plateau, val_every="2 epochs", max_epochs=4
    ).train()
    assert seen == [0, 2, 4]
    assert len(plateau._saved_loss) == 3


def test_a_hook_of_the_user_is_told_that_its_stream_was_not_evaluated(tmp_path):
    class Mine(AbstractHook):
        def after_epoch(self, epoch_id, epoch_data):
            epoch_data["valid"]

    with pytest.raises(KeyError, match="was not evaluated in this epoch, only: train. val_every"):
        make(tmp_path, Mine(), val_every="2 epochs").train()


def test_a_test_after_the_training_leaves_out_hooks_of_other_streams(tmp_path):
    class Mine(AbstractHook):
        def after_epoch(self, epoch_id, epoch_data):
            seen.append((epoch_id, epoch_data["train"]["loss"]["mean"] > 0))

    seen = []
    trainer = make(
        tmp_path,
        hooks.ComputeStats(["loss"]),
        hooks.WriteCSV(output_dir=str(tmp_path)),
        hooks.SaveBest(model=None),
        Mine(),
        data={"test": make_data(4)},
    )
    trainer.train()
    assert trainer.test()["test/loss/mean"] == pytest.approx(
        trainer.run.metrics.latest("test/loss")
    )
    assert seen == [(0, True), (1, True), (2, True)]


def test_prefixes_are_those_of_the_metric_store():
    several = {"val": make_data(4), "clean": make_data(4)}
    run = make_trainer(val_data=several, data={"test": make_data(4)}).run
    assert Streams(run).prefixes == {"valid": "val", "clean": "val/clean", "train": "train"}
    assert Streams(run).aliases == {"val": "valid"}
    assert Streams(run, is_test=True).prefixes == {"test": "test"}
