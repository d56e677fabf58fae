from hookloop.writers.base import Writer
from hookloop.writers.outbox import EARLY, Outbox
from hookloop.writers.records import Text


class Keeping(Writer):
    def __init__(self):
        self.texts = []

    def write(self, records):
        self.texts += [record.text for record in records]


def put(outbox, *texts):
    for text in texts:
        outbox.put(Text("note", text))


def test_every_open_writer_gets_what_comes():
    outbox, one, other = Outbox(), Keeping(), Keeping()
    outbox.open(one)
    put(outbox, "a")
    outbox.open(other)
    put(outbox, "b")
    outbox.close(one)
    put(outbox, "c")
    assert (one.texts, other.texts) == (["a", "b"], ["b", "c"])


def test_what_came_before_any_writer_waits_for_all_of_them():
    outbox, one, other = Outbox(), Keeping(), Keeping()
    put(outbox, "early")
    outbox.open(one)
    outbox.open(other)
    assert one.texts == other.texts == ["early"]


def test_nothing_is_gathered_for_ever_when_nobody_writes():
    outbox, late = Outbox(), Keeping()
    put(outbox, *map(str, range(EARLY + 10)))
    outbox.open(late)
    assert len(late.texts) == EARLY
