"""The base class of emloop's hooks."""

import pytest

from hookloop_dialects.emloop.hooks import AbstractHook


class Mine(AbstractHook):
    def __init__(self, size=1, **kwargs):
        super().__init__(**kwargs)


def test_every_event_does_nothing_by_default():
    hook = Mine()
    hook.before_training()
    hook.after_batch(stream_name="train", batch_data={})
    hook.after_epoch(epoch_id=1, epoch_data={})
    hook.after_epoch_profile(epoch_id=1, profile={}, streams=[])
    hook.after_training(True)


def test_what_emloop_supplies_is_accepted_without_a_warning(caplog):
    Mine(model=1, dataset=2, output_dir=3)
    assert not caplog.messages


def test_an_unknown_argument_is_a_warning_with_the_accepted_ones(caplog):
    Mine(sise=3)
    assert caplog.messages == ["Mine has no argument 'sise'; it takes size, kwargs."]


def test_a_main_loop_is_set_once():
    hook, loop = Mine(), object()
    hook.register_mainloop(loop)
    assert hook._main_loop is loop
    with pytest.raises(ValueError, match="Mine belongs to a main loop already"):
        hook.register_mainloop(loop)
