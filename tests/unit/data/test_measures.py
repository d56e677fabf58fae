import torch
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, SequentialSampler

from hookloop.data.position.measures import (
    batch_size_of,
    batches_after,
    has_another_size,
    length_of,
    list_changes,
    measure,
    samples_of_batches,
    sizes_of,
)
from hookloop.data.stream import Stream


def loader_of_sampler(size, drop_last=False):
    return DataLoader(
        range(10), batch_sampler=BatchSampler(SequentialSampler(range(10)), size, drop_last)
    )


def test_a_loader_is_measured():
    measures = measure(DataLoader(range(10), batch_size=4))
    assert measures == {
        "batches": 3,
        "batch_size": 4,
        "samples": 10,
        "loaded in workers": False,
    }
    assert measure([1, 2])["batches"] == 2


def test_batches_of_another_size_count_only_over_the_same_samples():
    before = measure(DataLoader(range(10), batch_size=4))
    assert has_another_size(before, measure(DataLoader(range(10), batch_size=5)))
    assert not has_another_size(before, measure(DataLoader(range(10), batch_size=4)))
    assert not has_another_size(before, measure(DataLoader(range(11), batch_size=5)))
    assert list_changes(before, measure(DataLoader(range(11), batch_size=4))) == [
        "samples: 10 -> 11"
    ]


def test_a_batch_sampler_of_torch_has_a_size_too():
    assert batch_size_of(loader_of_sampler(3)) == 3
    assert sizes_of(loader_of_sampler(3)) == (3, 10)
    assert batch_size_of(DataLoader(range(10), batch_sampler=[[1, 2], [3]])) is None
    assert batch_size_of([1]) is None


def test_a_run_with_a_batch_sampler_of_torch_continues_by_samples():
    first = Stream(loader_of_sampler(3), "train_data")
    groups = first.groups(1)
    assert [next(groups)[0].tolist() for _ in range(2)] == [[0, 1, 2], [3, 4, 5]]
    state = first.state_dict()
    assert state["samples"] == 6
    second = Stream(loader_of_sampler(3, drop_last=True), "train_data")
    second.load_state_dict(state)
    assert [group[0].tolist() for group in second.groups(1)] == [[6, 7, 8]]
    third = Stream(loader_of_sampler(2), "train_data")
    third.load_state_dict(state)
    assert third.batches_left == 2
    assert [group[0].tolist() for group in third.groups(1)] == [[6, 7], [8, 9]]


def test_what_has_no_length_has_none():
    class Endless(IterableDataset):
        def __iter__(self):
            return iter(torch.arange(3))

    assert length_of(DataLoader(Endless())) is None
    assert length_of(iter([])) is None


def test_an_old_position_is_converted_to_samples():
    measures = {"batch_size": 4, "samples": 10}
    assert samples_of_batches({"position": 2}, measures) == 8
    assert samples_of_batches({"position": 3}, measures) == 10
    assert samples_of_batches({"position": 3}, {"batch_size": None, "samples": 10}) is None


def test_the_batches_after_some_samples_are_counted():
    loader = DataLoader(range(10), batch_size=4)
    assert [batches_after(loader, samples) for samples in (0, 5, 10)] == [3, 2, 0]
    assert batches_after(loader_of_sampler(4, drop_last=True), 5) == 1
    assert [batches_after(loader, samples, limit=2) for samples in (0, 5, 9)] == [2, 1, 0]
