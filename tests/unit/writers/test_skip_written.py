from hookloop.writers.base import Writer
from hookloop.writers.records import Config, Scalars, Text
from hookloop.writers.skip_written import SkipWritten


class Holding(Writer):
    def __init__(self, **held):
        self._held = held
        self.records = []

    def write(self, records):
        self.records += records

    def held(self):
        return self._held

    def held_name(self, name):
        return name.replace("/", "_")


def test_only_records_newer_than_those_of_the_backend_are_written():
    inner = Holding(train_loss=4, note=2)
    writer = SkipWritten(inner)
    writer.write([Config({"a": 1}), Text("note", "old", 2), Text("note", "new", 3)])
    for step in (3, 4, 5):
        writer.write([Scalars({"train/loss": 0.5, "val/loss": 1.0}, step)])
    assert inner.records[0] == Config({"a": 1}) and inner.records[1].text == "new"
    assert [set(record.values) for record in inner.records[2:]] == [
        {"val/loss"}, {"val/loss"}, {"train/loss", "val/loss"},
    ]  # fmt: skip


def test_a_backend_may_know_one_step_for_all_names():
    inner = Holding(**{"": 3})
    SkipWritten(inner).write([Scalars({"a": float(step)}, step) for step in (2, 3, 4)])
    assert [record.step for record in inner.records] == [4]
