import logging
import threading

import pytest

from hookloop.writers import background
from hookloop.writers.background import Background
from hookloop.writers.base import Writer
from hookloop.writers.records import Scalars


class Keeping(Writer):
    name = "keeping"

    def __init__(self):
        self.records = []
        self.closed = 0

    def write(self, records):
        self.records += records

    def close(self):
        self.closed += 1


class Failing(Keeping):
    name = "failing"

    def __init__(self, at):
        super().__init__()
        self.at = at

    def write(self, records):
        if len(self.records) == self.at:
            raise ConnectionError("the server is gone")
        super().write(records)


class Waiting(Keeping):
    name = "waiting"

    def __init__(self):
        super().__init__()
        self.go = threading.Event()

    def write(self, records):
        self.go.wait()
        super().write(records)


def scalars(step):
    return Scalars({"loss": 1.0}, step)


def test_everything_is_written_in_order_before_it_is_closed():
    inner = Keeping()
    writer = Background(inner)
    for step in range(500):
        writer.write([scalars(step)])
    writer.close()
    assert [record.step for record in inner.records] == list(range(500))
    assert inner.closed == 1


def test_a_flush_waits_for_the_queue():
    inner = Keeping()
    writer = Background(inner)
    writer.write([scalars(1)])
    writer.flush()
    assert len(inner.records) == 1
    writer.close()


def test_a_failing_writer_is_reported_once_and_switched_off(caplog):
    inner = Failing(at=2)
    writer = Background(inner)
    with caplog.at_level(logging.WARNING, "hookloop"):
        for step in range(10):
            writer.write([scalars(step)])
        writer.flush()
        writer.close()
    assert writer.failed and len(inner.records) == 2 and inner.closed == 1
    (message,) = caplog.messages
    assert "'failing'" in message and "ConnectionError: the server is gone" in message


def test_a_full_queue_makes_the_caller_wait_and_loses_nothing():
    inner = Waiting()
    writer = Background(inner, size=2)
    handed_over = []

    def hand_over():
        for step in range(10):
            writer.write([scalars(step)])
            handed_over.append(step)

    thread = threading.Thread(target=hand_over)
    thread.start()
    thread.join(0.2)
    assert len(handed_over) < 10
    inner.go.set()
    thread.join()
    writer.close()
    assert [record.step for record in inner.records] == list(range(10))


@pytest.mark.parametrize("act", ["write", "flush", "close"])
def test_a_writer_without_progress_is_given_up(act, caplog):
    inner = Waiting()
    writer = Background(inner, size=1, patience=0.05)
    with caplog.at_level(logging.WARNING, "hookloop"):
        for step in range(4 if act == "write" else 1):
            writer.write([scalars(step)])
        if act != "write":
            getattr(writer, act)()
    assert writer.failed
    assert "it made no progress for 0.05 seconds" in caplog.messages[0]
    inner.go.set()
    writer.close()


@pytest.mark.parametrize("act", ["flush", "close"])
def test_a_slow_writer_with_progress_gets_more_time(act):
    class Slow(Keeping):
        def write(self, records):
            threading.Event().wait(0.1)
            super().write(records)

    inner = Slow()
    writer = Background(inner, patience=0.5)
    for step in range(10):
        writer.write([scalars(step)])
    getattr(writer, act)()
    assert not writer.failed
    assert [record.step for record in inner.records] == list(range(10))
    writer.close()


def test_a_hurried_run_does_not_wait_for_a_slow_writer(caplog, monkeypatch):
    monkeypatch.setattr(background, "HURRIED_PATIENCE", 0.05)
    inner = Waiting()
    writer = Background(inner)
    writer.write([scalars(1)])
    writer.hurry()
    writer.flush()
    assert writer.failed
    assert "it took more than 0.05 seconds" in caplog.text
    inner.go.set()
    writer.close()


def test_a_writer_that_hangs_while_closing_is_given_up(caplog):
    go = threading.Event()

    class Hangs(Keeping):
        def close(self):
            go.wait(30)

    inner = Hangs()
    writer = Background(inner, patience=0.2)
    writer.write([scalars(1)])
    writer.close()
    assert "closing it took more than 0.2 seconds" in caplog.text
    assert len(inner.records) == 1
    go.set()


def test_write_now_writes_after_the_queue():
    inner = Keeping()
    writer = Background(inner)
    for step in range(50):
        writer.write([scalars(step)])
    writer.write_now([scalars(50)])
    assert [record.step for record in inner.records] == list(range(51))
    writer.close()


def test_a_writer_that_cannot_be_closed_is_reported(caplog):
    class Sticky(Keeping):
        def close(self):
            raise OSError("no space left")

    with caplog.at_level(logging.WARNING, "hookloop"):
        Background(Sticky()).close()
    assert "no space left" in caplog.text
