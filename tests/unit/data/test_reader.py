import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler, SequentialSampler

from hookloop.data.indices import PassStart
from hookloop.data.reader import LoaderReader, PlainReader, StatefulReader, make_reader


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
