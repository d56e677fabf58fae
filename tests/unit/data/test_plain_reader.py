from hookloop.data.position.indices import PassStart
from hookloop.data.reading.plain import PlainReader, StatefulReader


class Stateful:
    def __init__(self):
        self.at = 0

    def __iter__(self):
        while self.at < 4:
            self.at += 1
            yield self.at

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]


def test_batches_before_the_position_are_read_and_dropped():
    assert list(PlainReader([1, 2, 3]).begin(PassStart(skip=2))) == [3]


def test_what_can_be_read_once_is_not_exact():
    assert "read only once" in PlainReader(iter([1])).inexact
    assert PlainReader([1]).inexact is None


def test_a_stateful_loader_finds_its_position_itself():
    reader = StatefulReader(Stateful())
    batches = reader.begin(PassStart())
    assert [next(batches), next(batches)] == [1, 2]
    again = StatefulReader(Stateful())
    again.load(reader.state(2, "loader"))
    assert list(again.begin(PassStart(skip=2))) == [3, 4]
    assert not again.close()
