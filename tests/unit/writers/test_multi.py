import logging

from hookloop.writers.base import Multi, Writer
from hookloop.writers.records import Scalars


class Keeping(Writer):
    def __init__(self):
        self.calls = []

    def write(self, records):
        self.calls += records

    def flush(self):
        self.calls.append("flush")

    def close(self):
        self.calls.append("close")


class Failing(Writer):
    name = "failing"

    def write(self, records):
        raise OSError("disk full")


def test_every_writer_gets_every_record():
    first, second = Keeping(), Keeping()
    writer = Multi(first, second)
    record = Scalars({"loss": 1.0}, 1)
    writer.write(iter([record]))
    writer.flush()
    writer.close()
    assert first.calls == second.calls == [record, "flush", "close"]


def test_a_failing_writer_is_dropped_and_the_others_continue(caplog):
    kept = Keeping()
    writer = Multi(Failing(), kept)
    with caplog.at_level(logging.WARNING, "hookloop"):
        writer.write_scalar("loss", 1.0, 1)
        writer.write_scalar("loss", 2.0, 2)
    assert [record.step for record in kept.calls] == [1, 2]
    (message,) = caplog.messages
    assert "'failing'" in message and "disk full" in message
