import importlib
import signal
from enum import IntEnum

import pytest

from hookloop.parallel import signals


def test_every_name_is_a_signal_of_this_system():
    assert all(isinstance(signal.Signals[name], int) for name in signals.STOP_SIGNALS)
    assert {"SIGINT", "SIGTERM"} <= set(signals.STOP_SIGNALS)
    assert len(set(signals.STOP_SIGNALS)) == len(signals.STOP_SIGNALS)


def test_none_of_them_is_one_that_no_process_can_handle():
    assert not {"SIGKILL", "SIGSTOP"} & set(signals.STOP_SIGNALS)


@pytest.fixture
def reloaded(monkeypatch):
    """The module as on a system with few signals."""
    windows = IntEnum("Signals", {"SIGINT": 2, "SIGTERM": 15, "SIGBREAK": 21})
    with monkeypatch.context() as patch:
        patch.setattr(signal, "Signals", windows)
        yield importlib.reload(signals)
    importlib.reload(signals)


def test_a_system_with_few_signals_has_those_of_them_that_exist(reloaded):
    assert reloaded.STOP_SIGNALS == ("SIGINT", "SIGTERM")
