import pytest
import torch
from tests.tiny import make_data
from torch.utils.data import DataLoader, Dataset

from hookloop.data.stream import Stream, open_streams
from hookloop.errors import DataError


def test_a_pass_is_read_in_groups_the_last_may_be_smaller():
    source = Stream([1, 2, 3, 4, 5], "train_data")
    positions = [(group, source.position) for group in source.groups(2)]
    assert positions == [([1, 2], 2), ([3, 4], 4), ([5], 5)]
    assert source.position == 0


@pytest.mark.parametrize("size", [1, 2])
def test_the_position_is_saved_and_found_again(tmp_path, size):
    def source():
        return Stream(make_data(20, 4, shuffle=True), "train_data")

    torch.manual_seed(1)
    first = source()
    groups = first.groups(size)
    next(groups)
    torch.save([first.state_dict(), torch.get_rng_state()], tmp_path / "state.pth")
    rest = [group[0][0] for group in groups]
    state, rng = torch.load(tmp_path / "state.pth", weights_only=True)
    again = source()
    again.load_state_dict(state)
    torch.manual_seed(99)
    torch.set_rng_state(rng)
    assert again.position == size
    found = [group[0][0] for group in again.groups(size)]
    assert len(found) == len(rest)
    assert all(torch.equal(*pair) for pair in zip(found, rest, strict=True))


def test_its_state_does_not_grow():
    source = Stream(make_data(400, 1), "train_data")
    sizes = set()
    for _ in source.groups(1):
        state = source.state_dict()
        sizes.add(len(str(state.keys())) + len(state["began"]["python"][1]))
    assert len(sizes) == 1


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "train_data is empty: it has no batch."),
        ("text", "train_data is str: it must be an iterable of batches."),
        (7, "train_data is int"),
        (make_data(4, 8, drop_last=True), "fewer than one batch of 8, and drop_last=True drops"),
    ],
)
def test_data_that_cannot_be_trained_on_is_rejected(data, message):
    with pytest.raises(DataError) as caught:
        Stream(data, "train_data")
    assert message in str(caught.value)


def test_streams_are_named_in_messages():
    with pytest.raises(DataError, match=r"val_data\['noisy'\] is empty"):
        open_streams({"clean": [1], "noisy": []}, "val_data")


def test_whole_passes_are_counted_for_the_next_run():
    source = Stream(make_data(), "val_data")
    for _ in range(2):
        list(source.read())
    list(source)  # A pass of a hook, which does not count.
    again = Stream(make_data(), "val_data")
    again.load_reading_state(source.reading_state())
    assert again.reading_state()["passes"] == 2


def test_other_data_than_before_is_reported(caplog):
    first = Stream(make_data(20, 4), "train_data")
    next(first.groups(1))
    state = first.state_dict()

    Stream(make_data(20, 4), "train_data").load_state_dict(state)
    assert not caplog.records
    Stream(make_data(30, 10), "train_data").load_state_dict(state)
    assert (
        "train_data has changed: batches: 5 -> 3; batch_size: 4 -> 10; samples: 20 -> 30. "
        "The run continues at batch 1 of it"
    ) in caplog.text


@pytest.mark.parametrize(
    "data",
    [
        DataLoader(range(20), batch_size=4),
        [torch.arange(4 * number, 4 * number + 4) for number in range(5)],
    ],
)
def test_ranks_that_share_data_read_their_parts_of_the_first_batches(data):
    parts = []
    for rank in range(2):
        source = Stream(data, "train_data", limit=2)
        source.share_among(rank, 2)
        assert source.num_batches == 2
        parts.append([batch.tolist() for (batch,) in source.groups(1)])
    assert parts == [[[0, 1], [4, 5]], [[2, 3], [6, 7]]]


def test_a_pass_for_a_hook_has_the_same_limit():
    source = Stream([1, 2, 3, 4], "train_data", limit=2)
    assert list(source) == [1, 2]
    assert list(source.groups(1)) == [[1], [2]]
    assert (source.position, source.batches_left) == (0, 2)


class Loaded(Dataset):
    """Counts what is loaded, in the process that loads it."""

    def __init__(self):
        self.seen = []

    def __len__(self):
        return 40

    def __getitem__(self, index):
        self.seen.append(index)
        return index


def test_no_sample_is_loaded_that_is_not_read():
    data = Loaded()
    assert len(list(Stream(DataLoader(data, batch_size=4), "train_data", limit=2).groups(1))) == 2
    assert data.seen == list(range(8))
