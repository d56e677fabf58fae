"""Ctrl-C ends the training cleanly."""

import os
import signal

import pytest
from tests.emloop.looking import train

from hookloop.hooks import StopOnSignal
from hookloop.outcome import Interrupted
from hookloop_dialects.emloop import AbstractHook, hooks


class Interrupt(AbstractHook):
    """Sends the signal after the first batch and notes how the training ends."""

    def __init__(self):
        super().__init__()
        self.ends = []

    def after_batch(self, **_):
        os.kill(os.getpid(), signal.SIGINT)

    def after_training(self, success):
        self.ends.append(success)


def test_a_signal_ends_the_training_successfully(tmp_path):
    hook = Interrupt()
    with pytest.raises(Interrupted):
        train(tmp_path, hook, hooks.CatchSigint(model=None), max_epochs=9)
    assert hook.ends == [True]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_it_leaves_the_signal_to_a_hook_that_handles_it_already(tmp_path):
    hook, row = Interrupt(), hooks.CatchSigint()
    (native,) = row.native_hooks()
    with pytest.raises(Interrupted):
        train(tmp_path, StopOnSignal(), hook, native, max_epochs=9)
    assert native._handler is None
    assert hook.ends == [True]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
