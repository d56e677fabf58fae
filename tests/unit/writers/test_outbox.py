from hookloop.writers.background import MAX_EARLY, Outbox
from hookloop.writers.base import Writer
from hookloop.writers.records import Text


class Keeping(Writer):
    def __init__(self):
        self.texts = []

    def write(self, records):
        self.texts += [record.text for record in records]


def put(outbox, *texts):
    for text in texts:
        outbox.put(Text("note", text))


def test_every_open_writer_gets_every_record():
    outbox, first, second = Outbox(), Keeping(), Keeping()
    outbox.open(first)
    put(outbox, "a")
    outbox.open(second)
    put(outbox, "b")
    outbox.close(first)
    put(outbox, "c")
    assert (first.texts, second.texts) == (["a", "b"], ["b", "c"])


def test_early_records_are_sent_to_all_writers():
    outbox, first, second = Outbox(), Keeping(), Keeping()
    put(outbox, "early")
    outbox.open(first)
    outbox.open(second)
    assert first.texts == second.texts == ["early"]


def test_early_records_are_limited_if_there_is_no_writer():
    outbox, late = Outbox(), Keeping()
    put(outbox, *map(str, range(MAX_EARLY + 10)))
    outbox.open(late)
    assert len(late.texts) == MAX_EARLY


def test_every_writer_is_ended_once_even_if_one_fails(caplog):
    outbox, ended = Outbox(), []

    def fail():
        raise OSError("disk full")

    outbox.open(Keeping(), fail)
    outbox.open(Keeping(), lambda: ended.append("second"))
    outbox.finish()
    outbox.finish()
    assert ended == ["second"]
    assert caplog.messages == ["A writer failed at the end: OSError: disk full"]


def test_records_do_not_wait_after_the_last_writer_has_closed():
    outbox, first, second = Outbox(), Keeping(), Keeping()
    put(outbox, "early")
    assert not outbox.is_empty
    outbox.open(first)
    outbox.close(first)
    assert outbox.is_empty
    outbox.open(second)
    assert second.texts == []
