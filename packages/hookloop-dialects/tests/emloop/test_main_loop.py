"""The run as emloop's hooks see it."""

import pytest
from tests.emloop.looking import train
from tests.tiny import make_data, make_trainer

from hookloop.errors import HookError
from hookloop_dialects.emloop import AbstractHook
from hookloop_dialects.emloop.main_loop import MainLoop


def test_the_main_loop_offers_what_hooks_touch(tmp_path):
    class Ask(AbstractHook):
        def after_epoch(self, epoch_id, epoch_data):
            loop = self._main_loop
            seen.append((loop.training_epochs_done, loop.extra_streams, loop.fixed_epoch_size))
            seen.append(len(list(loop.get_stream("valid"))))

    seen = []
    train(tmp_path, Ask(), val_data=make_data(8))
    assert seen == [(1, ["valid"], 3), 2]


def test_streams_are_found_by_emloops_names():
    trainer = make_trainer(
        val_data={"clean": make_data(4), "noisy": make_data(8)}, data={"test": make_data(16)}
    )
    loop = MainLoop(trainer.run)
    assert loop.extra_streams == ["clean", "noisy"]
    counts = {
        name: len(list(loop.get_stream(name))) for name in ("train", "clean", "noisy", "test")
    }
    assert counts == {"train": 3, "clean": 1, "noisy": 2, "test": 4}


def test_an_unknown_stream_is_an_error_with_the_nearest():
    loop = MainLoop(make_trainer(val_data=make_data(4)).run)
    with pytest.raises(HookError, match=r"no stream 'vaild'.*'valid'.*Available: valid, train"):
        loop.get_stream("vaild")


@pytest.mark.parametrize("name", ["_model", "_dataset", "run_training", "epoch"])
def test_what_is_not_offered_has_a_hint(name):
    with pytest.raises(HookError, match=f"asks for main_loop.{name}.* Use .* instead"):
        getattr(MainLoop(make_trainer().run), name)
