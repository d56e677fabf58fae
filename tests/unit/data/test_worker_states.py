import pickle
import random

import numpy as np
import pytest
import torch
from tests.carried import (
    Backwards,
    Noisy,
    NoisyGroups,
    draw_and_collate,
    make_loader,
    read_cut,
    read_plainly,
    seed_by_number,
)
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, WeightedRandomSampler

from hookloop.data.position.indices import PassStart
from hookloop.data.random import workers as worker_states
from hookloop.data.random.states import seed_all
from hookloop.data.random.workers import (
    WorkerStates,
    check_generators,
    read_generators,
    restore_generators,
)
from hookloop.data.reading.current import make_reader
from hookloop.data.stream import Stream
from hookloop.errors import DataError

COUNT = 11

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")


def draw():
    return random.random(), random.gauss(0, 1), np.random.rand(), np.random.randn(), torch.rand(3)


def same(one, other):
    return one[:4] == other[:4] and torch.equal(one[4], other[4])


@pytest.mark.parametrize("draws", [0, 1, 2])
def test_the_generators_continue_from_a_state(draws):
    seed_all(1)
    for _ in range(draws):  # Each holds back a normal number, or gives it away.
        draw()
    state = read_generators()
    numbers = draw()
    assert read_generators() != state
    restore_generators(state)
    assert read_generators() == state
    assert same(draw(), numbers)


def test_the_state_is_the_same_from_the_public_functions(monkeypatch):
    seed_all(1)
    draw()
    state = read_generators()
    python, numpy, torch_cpu = worker_states.cached_generators()
    public = (
        python._replace(get_state=random.getstate),
        numpy._replace(get_state=np.random.get_state),
        torch_cpu,
    )
    monkeypatch.setattr(worker_states, "cached_generators", lambda: public)
    assert read_generators() == state


def test_another_bit_generator_of_numpy_is_rejected():
    before = np.random.get_bit_generator()
    np.random.set_bit_generator(np.random.PCG64(1))
    try:
        with pytest.raises(DataError, match="replaced NumPy's bit generator"):
            read_generators()
    finally:
        np.random.set_bit_generator(before)


@pytest.mark.parametrize("place", [0, 2516 + 2496])
def test_a_damaged_state_is_rejected(place):
    state = bytearray(read_generators())
    check_generators(bytes(state))
    state[place : place + 4] = b"\xff\xff\0\0"
    with pytest.raises(ValueError, match="damaged"):
        check_generators(bytes(state))
    with pytest.raises(RuntimeError):
        check_generators(read_generators()[:-8])


@pytest.mark.slow
@pytest.mark.parametrize("persistent", [False, True], ids=["each pass", "persistent"])
def test_cut_anywhere_the_batches_are_those_of_a_plain_loop(persistent):
    def make():
        return make_loader(
            shuffle=True, drop_last=True, num_workers=2, persistent_workers=persistent
        )

    whole = read_plainly(make, 2)
    assert read_cut(make, 2) == whole
    for cut in range(1, 2 * len(whole[0])):
        assert read_cut(make, 2, [cut]) == whole, f"cut after {cut}"


@pytest.mark.slow
def test_workers_that_were_ended_continue_in_the_same_process():
    def make():
        return make_loader(shuffle=True, num_workers=2, persistent_workers=True)

    whole = read_plainly(make, 3)
    seed_all(3)
    source = Stream(make(), "train_data", seed_samples="workers")
    read = []
    while len(read) < sum(map(len, whole)):
        for group in source.groups(1):
            read.append((group, torch.rand(()).item()))
            if len(read) in (2, 9):
                break
        source.close()
    assert read == [pair for one in whole for pair in one]


OPTIONS = {
    "no workers": {"shuffle": True},
    "one worker": {"shuffle": True, "num_workers": 1, "persistent_workers": True},
    "three workers": {"shuffle": True, "num_workers": 3, "persistent_workers": True},
    "init": {"num_workers": 2, "persistent_workers": True, "worker_init_fn": seed_by_number},
    "more workers than batches": {"batch_size": 8, "num_workers": 3, "persistent_workers": True},
    "not batched": {"batch_size": None, "num_workers": 2, "collate_fn": None},
    "loaded at once": {"kind": NoisyGroups, "num_workers": 2, "collate_fn": draw_and_collate},
    "batch sampler": {
        "batch_size": 1,
        "batch_sampler": BatchSampler(Backwards(COUNT), 3, drop_last=False),
        "num_workers": 2,
    },
}


def making(options):
    def make():
        settings = dict(options)
        if seed := settings.pop("seed", None):
            settings["generator"] = torch.Generator().manual_seed(seed)
        return make_loader(**settings)

    return make


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_a_pass_that_was_resumed_can_be_resumed_again(options):
    make = making(options)
    whole = read_plainly(make, 3, size=1)
    first, total = len(whole[0]), sum(map(len, whole))
    # Inside of a pass twice, at its end, in the next pass, and inside of the last.
    assert read_cut(make, 3, {1, 3, first, first + 1, total - 1}) == whole


@pytest.mark.slow
def test_options_at_random():
    chooser = random.Random(20)
    for number in range(6):
        make = making(options := choose(chooser))
        size = chooser.choice([1, 2, 3])
        whole = read_plainly(make, 3, size)
        total = sum(map(len, whole))
        cuts = chooser.sample(range(1, total + 1), min(total, 2))
        assert read_cut(make, 3, cuts, size) == whole, f"{number}: {options}, {cuts}, {size}"


def choose(chooser):
    """Choose options of a loader."""
    options = {
        "num_workers": chooser.choice([1, 2, 3]),
        "persistent_workers": chooser.random() < 0.6,
        "prefetch_factor": chooser.choice([1, 2, 4]),
        "worker_init_fn": chooser.choice([None, seed_by_number]),
        "kind": chooser.choice([Noisy, NoisyGroups]),
        "collate_fn": chooser.choice([list, draw_and_collate]),
        "seed": chooser.choice([None, None, 5]),
    }
    samplers = [RandomSampler(range(COUNT)), WeightedRandomSampler([1.0] * COUNT, COUNT)]
    batches = BatchSampler(Backwards(COUNT), 3, drop_last=True)
    order = chooser.choice(
        [
            {"batch_size": None, "shuffle": True},
            {"batch_size": 1, "batch_sampler": batches},
            {"batch_size": chooser.choice([1, 3]), "sampler": chooser.choice(samplers)},
            {"batch_size": chooser.choice([1, 2, 4]), "drop_last": True, "shuffle": True},
        ]
    )
    return options | order


def test_what_a_worker_gets_can_be_sent_to_a_process_that_was_not_forked():
    states = WorkerStates(make_loader(num_workers=1, worker_init_fn=seed_by_number))
    states.receive((0, read_generators()))
    changes = pickle.loads(pickle.dumps(states.changes(rank=3)))
    assert changes["worker_init_fn"].init is seed_by_number
    assert changes["worker_init_fn"].rank == 3
    batch, state = changes["collate_fn"]([1, 2])
    assert (batch, state) == ([1, 2], read_generators())
    assert changes["collate_fn"]([3]) == ([3], None)


def test_batches_that_were_read_ahead_of_a_group_do_not_count():
    states = WorkerStates(make_loader(num_workers=2))
    for number in range(5):
        # A worker that draws nothing sends no state; pinned memory makes a list of the tuple.
        sent = [number, None if number == 3 else bytes([number])]
        assert states.receive(sent) == number
    assert [one.item() for one in states.state_dict(5)["states"]] == [4, 1]
    assert [one.item() for one in states.state_dict(3)["states"]] == [2, 1]
    first, second = states.state_dict(1)["states"]
    assert (first.item(), second) == (0, None)
    assert states.state_dict(0) is None


def test_what_a_resume_needs_and_does_not_find_is_named(caplog):
    def make(workers, seed_samples="workers"):
        loader = make_loader(num_workers=workers)
        return Stream(loader, "train_data", seed_samples=seed_samples)

    source = make(2)
    next(source.groups(1))
    state = source.state_dict()
    source.close()
    make(2).load_state_dict(state)
    assert not caplog.text
    make(1).load_state_dict(state)
    assert "not exact: its number of workers is 1 and was 2" in caplog.text
    make(2, seed_samples=True).load_state_dict(state)
    assert "give seed_samples='workers' and as many workers as before" in caplog.text
    del state["workers"]
    make(2).load_state_dict(state)
    assert "not exact: the checkpoint does not hold the random numbers" in caplog.text


class OwnIter(DataLoader):
    def __iter__(self):
        return (batch[::-1] for batch in super().__iter__())


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: OwnIter(Noisy(), 2, num_workers=1, collate_fn=list), "OwnIter has a method"),
        (lambda: make_loader(num_workers=2, in_order=False), "in_order=False"),
    ],
)
def test_a_loader_whose_workers_cannot_be_followed_is_named_and_read(make, reason):
    reader = make_reader(make(), seed_samples="workers")
    assert reason in reader.inexact
    assert reader.state(0, "workers") == {}
    batches = list(reader.begin(PassStart()))
    assert sorted(one["index"] for batch in batches for one in batch) == list(range(COUNT))


class Broken(Noisy):
    def __getitem__(self, index):
        if index == 4:
            raise KeyError("sample 4 is broken")
        return index


def test_the_error_of_a_worker_is_as_it_was():
    def read(batches):
        with pytest.raises(KeyError) as caught:
            list(batches)
        return str(caught.value)

    loader = make_loader(kind=Broken, num_workers=1)
    source = Stream(loader, "train_data", seed_samples="workers")
    error = read(source.groups(1))
    source.close()
    assert error == read(loader)
    assert "sample 4 is broken" in error
