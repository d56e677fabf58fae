"""Loggers that are called at a fixed interval."""

import pytest
from tests.imix.tracing import train

from hookloop_dialects.imix import engine
from hookloop_dialects.imix.engine.hooks.log_writers import (
    CommonMetricLoggerHook,
    LogBufferWriter,
    TensorboardLoggerHook,
)


class Note(LogBufferWriter):
    """Notes when it writes and that it is closed."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def process_buffer_data(self):
        self.calls.append(self.log_buffer.iter)

    def close(self):
        self.calls.append("closed")


@pytest.mark.parametrize(
    ("options", "calls"),
    [
        ({"max_epochs": 2}, [1, 4]),
        ({"max_iters": 5}, [1, 3, 4]),
        ({"max_iters": 4}, [1, 3]),
        ({"max_iters": 5, "setup.config": {"log_config": {"period": 3}}}, [2, 4]),
    ],
)
def test_loggers_write_within_epochs_or_by_iteration_and_at_the_last(options, calls, tmp_path):
    first, second = Note(), Note()
    train(tmp_path, engine.hooks.PeriodicLogger([first, second], 2), **options)
    assert first.calls == second.calls == [*calls, "closed"]


def test_tensorboard_writes_after_epochs_too(tmp_path):
    class Board(TensorboardLoggerHook):
        def __init__(self):
            super().__init__()
            self.calls = []

        def write(self):
            self.get_buffer_data()
            self.calls.append((self.log_buffer.iter, self.log_buffer.epoch))

    board = Board()
    train(tmp_path, engine.hooks.PeriodicLogger([board], 50), max_epochs=2)
    assert board.calls == [(3, 0), (6, 1)]


def test_the_terminal_is_the_default():
    (logger,) = engine.hooks.PeriodicLogger()._loggers
    assert isinstance(logger, CommonMetricLoggerHook)
    assert engine.hooks.PeriodicLogger([])._loggers == []
