import pytest
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    DistributedSampler,
    IterableDataset,
    SequentialSampler,
)

from hookloop.data.reading.current import check_shareable, take_shard
from hookloop.errors import DataError


class Stream(IterableDataset):
    def __init__(self, numbers=range(12)):
        self.numbers = numbers

    def __iter__(self):
        return iter(self.numbers)


class Returning(Stream):
    def shard(self, rank, size):
        return Returning(self.numbers[rank::size])


class Changing(Stream):
    def shard(self, rank, size):
        self.numbers = self.numbers[rank::size]


class LikeHuggingFace(Stream):
    def shard(self, num_shards, index, contiguous=True):
        return LikeHuggingFace(self.numbers[index::num_shards])


@pytest.mark.parametrize("kind", [Returning, Changing, LikeHuggingFace])
def test_a_data_set_is_asked_for_the_part_of_a_rank(kind):
    loader = DataLoader(kind(), batch_size=2)
    part = take_shard(loader, 1, 3, "train_data")
    assert [batch.tolist() for batch in part] == [[1, 4], [7, 10]]
    assert (part is loader) == (kind is Changing)
    if kind is not Changing:
        assert len(list(loader)) == 6  # That of the user is left as it is.


def test_the_data_itself_comes_before_its_data_set():
    class Own(list):
        dataset = Returning()

        def shard(self, rank, size):
            return self[rank::size]

    assert take_shard(Own(range(5)), 1, 2, "train_data") == [1, 3]


@pytest.mark.parametrize("data", [[1, 2], DataLoader(Stream()), iter([1])])
def test_data_without_the_method_is_read_as_a_whole(data):
    assert take_shard(data, 0, 2, "train_data") is None


def test_a_map_style_data_set_is_never_asked():
    class Mapped(list):
        def shard(self, num_shards, index):
            raise AssertionError

    assert take_shard(DataLoader(Mapped([1, 2])), 0, 2, "train_data") is None


def test_another_kind_of_data_is_rejected():
    class Wrong(Stream):
        def shard(self, rank, size):
            return [rank, size]

    with pytest.raises(DataError, match=r"shard\(0, 2\).*Wrong") as caught:
        take_shard(DataLoader(Wrong()), 0, 2, "val_data['a']")
    assert caught.value.argument == "val_data"


def replicas(**attributes):
    sampler = SequentialSampler(range(8))
    vars(sampler).update(attributes)
    return sampler


class MyDistributedSampler(DistributedSampler):
    pass


@pytest.mark.parametrize(
    "loader",
    [
        DataLoader(range(8), 4, sampler=DistributedSampler(range(8), 2, 0)),
        DataLoader(range(8), 4, sampler=MyDistributedSampler(range(8), 1, 0)),
        DataLoader(range(8), 4, sampler=replicas(num_replicas=2, rank=0)),
        DataLoader(range(8), 4, sampler=replicas(world_size=2, rank=0)),
        DataLoader(
            range(8), batch_sampler=BatchSampler(DistributedSampler(range(8), 2, 0), 4, False)
        ),
    ],
)
@pytest.mark.parametrize("is_training", [True, False])
def test_a_sampler_that_divides_is_rejected(loader, is_training):
    with pytest.raises(DataError, match="train_data.*shuffle=True"):
        check_shareable(loader, "train_data", 2, is_training=is_training)


@pytest.mark.parametrize(
    "loader",
    [
        DataLoader(range(8), 3),
        DataLoader(range(8), batch_sampler=BatchSampler(SequentialSampler(range(8)), 3, False)),
        DataLoader(Stream(), 3),
    ],
)
def test_too_small_batches_are_rejected_for_training(loader):
    with pytest.raises(DataError, match="batches of 3 samples for 4 processes"):
        check_shareable(loader, "train_data", 4, is_training=True)
    check_shareable(loader, "train_data", 3, is_training=True)
    check_shareable(loader, "train_data", 4, is_training=False)


@pytest.mark.parametrize(
    "data",
    [
        [1, 2],
        DataLoader(range(8), batch_sampler=[[1, 2]]),
        DataLoader([[1, 2]], batch_size=None),
        DataLoader(range(8), 8, sampler=replicas(num_replicas=1, rank=0)),
    ],
)
def test_what_has_no_size_or_does_not_divide_is_accepted(data):
    check_shareable(data, "train_data", 4, is_training=True)
