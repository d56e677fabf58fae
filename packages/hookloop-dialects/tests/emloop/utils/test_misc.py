"""Contexts that silence or release something."""

import logging
import sys
import threading

from hookloop_dialects.emloop.utils import DisabledLogger, DisabledPrint, ReleasedSemaphore


def test_what_is_printed_is_dropped(capsys):
    with DisabledPrint():
        sys.stdout.write("hidden")
    sys.stdout.write("shown")
    assert capsys.readouterr().out == "shown"


def test_what_is_logged_is_dropped(caplog):
    with DisabledLogger("some"):
        logging.getLogger("some").warning("hidden")
    logging.getLogger("some").warning("shown")
    assert caplog.messages == ["shown"]


def test_a_semaphore_is_released_for_a_block():
    semaphore = threading.Semaphore(0)
    with ReleasedSemaphore(semaphore):
        assert semaphore.acquire(blocking=False)
        semaphore.release()
    assert not semaphore.acquire(blocking=False)
