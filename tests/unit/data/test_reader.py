import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    RandomSampler,
    SequentialSampler,
    TensorDataset,
)

from hookloop.data.position.indices import PassStart
from hookloop.data.ranks.cut import Cut
from hookloop.data.ranks.place import Share
from hookloop.data.reading.current import make_reader
from hookloop.data.reading.loader import LoaderReader
from hookloop.data.reading.plain import PlainReader, StatefulReader


class Indices(Dataset):
    """Samples that are their own index, and a record of what was read."""

    def __init__(self, count=10):
        self.count = count
        self.reads = []

    def __getitem__(self, index):
        self.reads.append(index)
        return index

    def __len__(self):
        return self.count


def loader(**options):
    return DataLoader(Indices(), **({"batch_size": 3} | options))


def batches(reader, start=PassStart()):  # noqa: B008 - it is frozen
    torch.manual_seed(2)
    return [batch.tolist() for batch in reader.begin(start)]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shuffle": True},
        {"drop_last": True},
        {"shuffle": True, "num_workers": 1},
        {"sampler": RandomSampler(range(10), replacement=True)},
        {"batch_size": 1, "batch_sampler": BatchSampler(SequentialSampler(range(10)), 4, False)},
    ],
    ids=["plain", "shuffled", "dropping", "in a worker", "sampler", "batch sampler"],
)
@pytest.mark.parametrize("skip", [0, 1, 2])
def test_a_pass_is_the_loaders_own_and_can_begin_in_the_middle(options, skip):
    torch.manual_seed(2)
    whole = [batch.tolist() for batch in loader(**options)]
    assert (
        batches(make_reader(loader(**options), seed_samples=True), PassStart(skip)) == whole[skip:]
    )


def test_what_is_skipped_is_not_read():
    data = Indices()
    reader = make_reader(DataLoader(data, batch_size=3), seed_samples=True)
    assert batches(reader, PassStart(2)) == [[6, 7, 8], [9]]
    assert data.reads == [6, 7, 8, 9]


def test_a_loader_without_batches_begins_in_the_middle_too():
    reader = make_reader(loader(batch_size=None), seed_samples=True)
    assert list(reader.begin(PassStart(7))) == [7, 8, 9]


def test_a_list_is_read_and_dropped_up_to_the_position():
    reader = make_reader([1, 2, 3, 4], seed_samples=True)
    assert list(reader.begin(PassStart(2))) == [3, 4]
    assert reader.inexact is None


def test_the_users_loader_is_left_as_it_is():
    mine = loader(num_workers=1)
    reader = make_reader(mine, seed_samples=True)
    assert isinstance(mine.dataset, Indices)
    assert batches(reader) == [batch.tolist() for batch in mine]


def test_each_kind_of_data_gets_its_reader():
    class Stateful(list):
        def state_dict(self):
            return {}

        def load_state_dict(self, state): ...

    assert isinstance(make_reader(Stateful(), seed_samples=True), StatefulReader)
    assert isinstance(make_reader(loader(), seed_samples=True), LoaderReader)
    assert isinstance(make_reader(iter([1]), seed_samples=True), PlainReader)


def test_generators_of_loader_and_samplers_are_found_once():
    generator = torch.Generator()
    reader = make_reader(loader(shuffle=True, generator=generator), seed_samples=True)
    assert [id(one) for one in reader.generators()] == [id(generator)]
    assert reader.inexact is None


def test_a_stateful_loader_with_workers_may_draw_other_numbers():
    class WithWorkers(list):
        num_workers = 2

        def state_dict(self):
            return {}

        def load_state_dict(self, state): ...

    assert "random numbers of its workers" in make_reader(WithWorkers(), seed_samples=True).inexact


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_the_queue_of_shares_is_in_step_with_the_batches(workers):
    reader = make_reader(loader(shuffle=True, num_workers=workers), seed_samples=True)
    cut = Cut(1, 2)
    reader.share(cut, is_shard=False)
    for skip in (0, 2, 0):
        # The last batch has one sample, which is not of this rank.
        expected = [Share(1, 3)] * (3 - skip) + [Share(0, 1)]
        begun = reader.begin(PassStart(skip))
        assert [(len(batch), cut.shares.popleft()) for batch in begun] == [
            (1, share) for share in expected
        ]
    next(reader.begin(PassStart()))
    reader.begin(PassStart(3))
    assert len(cut.shares) <= 1  # Without those of batches that nobody has taken.
    reader.close()


def test_tensors_are_still_gathered_when_shared():
    data = TensorDataset(torch.arange(10))
    reader = make_reader(DataLoader(data, batch_size=4), seed_samples=True)
    reader.share(Cut(1, 2), is_shard=False)
    batches = reader.begin(PassStart())
    assert isinstance(batches, map)
    assert [batch[0].tolist() for batch in batches] == [[2, 3], [6, 7], [9]]


def test_whole_batches_of_a_loader_without_batches_are_cut():
    data = [torch.arange(n, n + 4) for n in range(3)]
    reader = make_reader(DataLoader(data, batch_size=None), seed_samples=True)
    reader.share(Cut(1, 2), is_shard=False)
    assert [batch.tolist() for batch in reader.begin(PassStart(1))] == [[3, 4], [4, 5]]


@pytest.mark.slow
def test_workers_that_torch_seeds_draw_other_numbers_on_each_rank():
    class Drawn(Indices):
        def __getitem__(self, index):
            return torch.rand((), dtype=torch.float64)

    found = []
    for rank in range(3):
        torch.manual_seed(2)
        reader = make_reader(DataLoader(Drawn(12), 6, num_workers=2), seed_samples=False)
        reader.share(Cut(rank, 3), is_shard=False)
        found += [number for batch in reader.begin(PassStart()) for number in batch.tolist()]
        reader.close()
    assert len(set(found)) == 12


def test_batches_come_in_their_order_when_shared():
    mine = loader(num_workers=2, in_order=False)
    reader = make_reader(mine, seed_samples=True)
    assert not reader._copy.in_order
    reader.share(Cut(0, 2), is_shard=False)
    assert reader._copy.in_order
    assert not mine.in_order
