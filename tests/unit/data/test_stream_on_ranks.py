"""Ranks side by side in one process: each has its source, its own random numbers and its cut."""

import random
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    TensorDataset,
    WeightedRandomSampler,
)

from hookloop.data.random.states import GeneratorStates, seed_all
from hookloop.data.ranks.place import Share
from hookloop.data.stream import Stream
from hookloop.errors import DataError

RANKS = (1, 2, 3, 4)


class Noisy(Dataset):
    """Samples with their number and an augmentation that draws from all three generators."""

    def __init__(self, count):
        self.count = count
        self.loaded = []

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        self.loaded.append(int(index))
        noise = torch.rand(()).item() + random.random() + np.random.rand()
        return int(index), noise


class Lazy(Sampler):
    """Draws as it goes."""

    def __init__(self, count):
        self.count = count

    def __iter__(self):
        left = list(range(self.count))
        while left:
            drawn = random.randrange(1000) + np.random.randint(1000) + int(torch.randint(1000, ()))
            yield left.pop(drawn % len(left))

    def __len__(self):
        return self.count


class Uneven:
    """A batch sampler whose batches have different sizes, from 4 to 7."""

    def __init__(self, count):
        self.count = count

    def __iter__(self):
        order = torch.randperm(self.count)
        while len(order):
            size = random.randrange(4, 8)
            yield order[:size]
            order = order[size:]


class Shuffling(IterableDataset):
    """Shuffles through a small buffer, while it is read."""

    def __init__(self, count):
        self.count = count

    def __iter__(self):
        buffer = []
        for number in range(self.count):
            buffer.append(number)
            if len(buffer) > 5:
                yield buffer.pop(random.randrange(5)), torch.rand(()).item()
        for number in buffer:
            yield number, 0.0


class Keeping:
    """A loader that keeps its own position, and shuffles each pass."""

    def __init__(self, count):
        self.count = count
        self.order, self.read = [], 0

    def __iter__(self):
        if not self.read:
            self.order = torch.randperm(self.count).tolist()
        while self.read < self.count:
            numbers = self.order[self.read : self.read + 6]
            self.read += len(numbers)
            yield torch.tensor(numbers), torch.rand(len(numbers), dtype=torch.float64)
        self.read = 0

    def state_dict(self):
        return {"order": list(self.order), "read": self.read}

    def load_state_dict(self, state):
        self.order, self.read = list(state["order"]), state["read"]


def with_generator(count):
    generator = torch.Generator().manual_seed(5)
    return RandomSampler(range(count), replacement=True, num_samples=count, generator=generator)


KINDS = {
    "random": lambda n: DataLoader(Noisy(n), batch_size=6, shuffle=True),
    "sequential": lambda n: DataLoader(Noisy(n), batch_size=6),
    "dropping": lambda n: DataLoader(Noisy(n), batch_size=6, shuffle=True, drop_last=True),
    "weighted": lambda n: DataLoader(
        Noisy(n), batch_size=6, sampler=WeightedRandomSampler(torch.arange(n) + 1.0, n)
    ),
    "generator": lambda n: DataLoader(Noisy(n), batch_size=6, sampler=with_generator(n)),
    "own sampler": lambda n: DataLoader(Noisy(n), batch_size=6, sampler=Lazy(n)),
    "own batches": lambda n: DataLoader(Noisy(n), batch_sampler=Uneven(n)),
    "batch sampler": lambda n: DataLoader(
        Noisy(n), batch_sampler=BatchSampler(SequentialSampler(range(n)), 5, False)
    ),
    "tensors": lambda n: DataLoader(
        TensorDataset(torch.arange(n), torch.arange(n) / 7.0), batch_size=6, shuffle=True
    ),
    "list": lambda n: [(part, part / 3.0) for part in torch.arange(n).split(6)],
    "iterable": lambda n: DataLoader(Shuffling(n), batch_size=6),
    "keeping": Keeping,
    "without batches": lambda n: DataLoader(
        [(part, part / 3.0) for part in torch.arange(n).split(6)],
        batch_size=None,
        sampler=RandomSampler(range(-(-n // 6))),
    ),
}


class Rank:
    """One rank of a run, with its own state of the process's generators."""

    def __init__(self, data, rank, size, order, state=None, **options):
        seed_all(100 + rank)
        self.source = Stream(data, "train_data")
        if size > 1 or (state is None and order is not None):
            self.source.share_among(rank, size, order, **options)
        if state is not None:
            self.source.load_state_dict(state)
        self.randomness = GeneratorStates.now()
        self.groups = None

    def step(self, accumulate):
        """Return the samples that count, and the sizes of batches; None at the end of a pass."""
        self.randomness.restore()
        self.groups = self.groups or self.source.groups(accumulate)
        group = next(self.groups, None)
        if group is None:
            self.groups = None
            self.randomness = GeneratorStates.now()
            return None
        torch.rand(3), random.random(), np.random.rand()  # Dropout, different on each rank.
        shares = self.source.shares()
        assert len(shares) == len(group)
        found = []
        for (numbers, noise), share in zip(group, shares, strict=True):
            assert len(numbers) == max(share.own, 1)
            pairs = list(zip(numbers.tolist(), noise.tolist(), strict=True))
            found.append((pairs[: share.own], share.total))
        self.randomness = GeneratorStates.now()
        return found


def start(make, size, order, state=None):
    return [Rank(make(), rank, size, order, state) for rank in range(size)]


def train(ranks, *, steps=None, passes=None, accumulate=1):
    """Return the global batches of a run, a list per pass, and the state of the first rank."""
    found = [[]]
    while steps is None or sum(map(len, found)) < steps:
        parts = [rank.step(accumulate) for rank in ranks]
        if parts[0] is None:
            assert parts == [None] * len(ranks)
            if len(found) == passes:
                break
            found.append([])
            continue
        assert {rank.source.position for rank in ranks} == {ranks[0].source.position}
        for of_ranks in zip(*parts, strict=True):
            batch = [sample for samples, _ in of_ranks for sample in samples]
            assert {total for _, total in of_ranks} == {len(batch)}
            found[-1].append(batch)
    return found, ranks[0].source.state_dict()


def order_of(seed=3):
    seed_all(seed)
    return GeneratorStates.now(gpus=False)


def numbers(batches):
    return [number for batch in batches for number, _ in batch]


@pytest.mark.parametrize(
    ("kind", "count"),
    # A last batch that is dropped must not be the only one.
    [
        (kind, count)
        for kind in KINDS
        for count in (51, 7, 3, 1)
        if kind != "dropping" or count >= 6
    ],
)
def test_global_batches_are_the_same_for_any_number_of_ranks(kind, count):
    runs = [
        train(start(lambda: KINDS[kind](count), size, order_of()), passes=3)[0] for size in RANKS
    ]
    for run in runs[1:]:
        assert run == runs[0]
    first, second, third = runs[0]
    if kind not in ("weighted", "generator", "dropping"):
        assert all(sorted(numbers(one)) == list(range(count)) for one in runs[0])
    if count == 51 and kind not in ("sequential", "list", "batch sampler"):
        assert numbers(first) != numbers(second) != numbers(third)
    if count == 51 and kind not in ("tensors", "list", "without batches"):
        # Augmentations differ from pass to pass, and from sample to sample.
        noise = [noise for one in runs[0] for batch in one for _, noise in batch if noise]
        assert len(set(noise)) == len(noise)


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_continues_on_another_number_of_ranks(kind, tmp_path):
    def make():
        return KINDS[kind](33)

    whole, _ = train(start(make, 1, order_of()), passes=3)
    flat = [batch for one in whole for batch in one]
    for before in RANKS:
        for after in RANKS:
            # Inside the first pass, and inside the second.
            steps = (1, 4, len(whole[0]) + 3)[(before + 2 * after) % 3]
            first, state = train(start(make, before, order_of()), steps=steps)
            torch.save(state, tmp_path / "state.pth")
            state = torch.load(tmp_path / "state.pth", weights_only=True)
            passes = 3 - (len(first) - 1)
            rest, _ = train(start(make, after, order_of(77), state), passes=passes)
            found = [batch for one in (*first, *rest) for batch in one]
            assert found == flat, (before, after, steps)


def test_a_rank_loads_only_its_own_samples():
    data = [Noisy(50) for _ in range(3)]
    loaders = iter([DataLoader(one, batch_size=6, shuffle=True) for one in data])
    found, _ = train(start(lambda: next(loaders), 3, order_of()), passes=1)
    assert [len(one.loaded) for one in data] == [17, 17, 17]  # One more: 50 = 8 * 6 + 2.
    assert len(set(numbers(found[0]))) == 50


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("kind", ["random", "own sampler", "generator", "tensors", "list"])
def test_a_run_of_one_process_continues_on_many(kind, size):
    """The current pass in its own order, later ones in the order of the caller."""

    def make():
        return KINDS[kind](45)

    seed_all(3)
    alone = Stream(make(), "train_data")
    groups = alone.groups(1)
    seen = [next(groups)[0][0].tolist() for _ in range(3)]
    state = alone.state_dict()
    assert "order" not in state and alone.shares() is None
    rest_alone = [group[0][0].tolist() for group in groups]
    found, later = train(start(make, size, order_of(8), state), passes=3)
    assert [[number for number, _ in batch] for batch in found[0]] == rest_alone
    assert "order" in later and len(seen[0]) == 6
    again, _ = train(start(make, 4, order_of(8), state), passes=3)
    assert again == found


@pytest.mark.parametrize("kind", ["random", "weighted", "tensors"])
@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 2), (2, 4), (4, 1)])
def test_with_other_batches_each_sample_of_the_pass_is_still_read_once(kind, before, after):
    def make(batch_size):
        dataset = Noisy(45) if kind != "tensors" else KINDS["tensors"](45).dataset
        sampler = WeightedRandomSampler(torch.ones(45), 45, replacement=False)
        options = {"sampler": sampler} if kind == "weighted" else {"shuffle": True}
        return DataLoader(dataset, batch_size=batch_size, **options)

    whole, _ = train(start(lambda: make(6), before, order_of()), passes=1)
    first, state = train(start(lambda: make(6), before, order_of()), steps=4, accumulate=2)
    rest, last = train(start(lambda: make(8), after, order_of(), state), steps=2)
    assert last["samples"] == 40
    end, _ = train(start(lambda: make(5), before, order_of(), last), passes=2, accumulate=3)
    assert numbers(first[0]) + numbers(rest[0]) + numbers(end[0]) == numbers(whole[0])
    assert sorted(numbers(end[1])) == list(range(45))


@pytest.mark.slow
@pytest.mark.parametrize("persistent", [False, pytest.param(True, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "kind",
    [
        "own sampler",
        *(
            pytest.param(kind, marks=pytest.mark.long)
            for kind in ("random", "generator", "own batches", "iterable")
        ),
    ],
)
def test_workers_change_nothing(kind, persistent, tmp_path):
    def make(workers):
        plain = KINDS[kind](45)
        options = {"batch_sampler": plain.batch_sampler}
        if kind == "iterable":
            options = {"batch_size": 6}
        return DataLoader(
            plain.dataset, num_workers=workers, persistent_workers=persistent, **options
        )

    whole, _ = train(start(lambda: make(2), 1, order_of()), passes=2)
    for before, after, steps in ((2, 3, 3), (3, 1, 10), (1, 2, 1)):
        first, state = train(start(lambda: make(2), before, order_of()), steps=steps)
        torch.save(state, tmp_path / "state.pth")
        state = torch.load(tmp_path / "state.pth", weights_only=True)
        ranks = start(lambda: make(2), after, order_of(77), state)
        rest, _ = train(ranks, passes=2 - (len(first) - 1))
        for rank in ranks:
            rank.source.close()
        found = [batch for one in (*first, *rest) for batch in one]
        assert found == [batch for one in whole for batch in one]
    if kind == "random" and not persistent:
        without, _ = train(start(lambda: KINDS[kind](45), 3, order_of()), passes=2)
        assert without == whole


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("count", [203, 103])
@pytest.mark.parametrize("kind", KINDS)
def test_so_are_those_of_more_samples(kind, count):
    one, three = (
        train(start(lambda: KINDS[kind](count), size, order_of()), passes=2)[0] for size in (1, 3)
    )
    assert one == three


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
def test_torchdatas_loader_is_shared():
    from torchdata.stateful_dataloader import StatefulDataLoader

    def make():
        seed_all(9)  # It draws a seed when it is made. In a run, all ranks get that of the first.
        return StatefulDataLoader(Noisy(33), batch_size=6, shuffle=True)

    whole, _ = train(start(make, 1, order_of()), passes=2)
    assert sorted(numbers(whole[0])) == list(range(33))
    for before, after, steps in ((2, 3, 2), (3, 1, 4), (4, 2, 8)):
        first, state = train(start(make, before, order_of()), steps=steps)
        rest, _ = train(start(make, after, order_of(), state), passes=3 - len(first))
        found = [batch for one in (*first, *rest) for batch in one]
        assert found == [batch for one in whole for batch in one]


@pytest.mark.parametrize("count", [1003, 3, 1])
@pytest.mark.parametrize("kind", ["random", "sequential", "tensors", "list", "iterable"])
def test_an_evaluation_reads_each_sample_once(kind, count):
    found = []
    for rank in range(4):
        source = Stream(KINDS[kind](count), "val_data")
        source.share_among(rank, 4, order_of(), is_training=False)
        for values, _ in source.read():
            (share,) = source.shares()
            found += values.tolist()[: share.own]
        assert source.num_batches in (None, -(-count // 6))
        assert "order" in source.reading_state()
    assert sorted(found) == list(range(count))


def test_the_generators_of_the_process_do_not_move():
    def draw():
        return torch.rand(()).item(), random.gauss(0, 1), np.random.randn()

    ranks = start(lambda: KINDS["random"](45), 2, order_of())
    for rank in ranks:
        seed_all(5)
        drawn = [draw() for _ in rank.source.groups(1)]
        seed_all(5)
        assert drawn == [draw() for _ in drawn]


def test_the_shared_order_moves_by_orders_only():
    source = start(lambda: KINDS["random"](45), 1, order_of())[0].source
    orders = [source.order.now]
    for _ in range(2):
        list(source.groups(1))
        orders.append(source.order.now)
    assert not any(torch.equal(a.state["torch"], b.state["torch"]) for a, b in pairwise(orders))


@pytest.mark.parametrize("kind", ["generator", "own sampler", "random"])
def test_the_order_of_one_rank_can_be_given_to_the_others(kind, tmp_path):
    """The ranks have started with other seeds, and with samplers built at random."""

    class Built(Lazy):
        def __init__(self, count):
            super().__init__(count)
            self.built = torch.randperm(count).tolist()

        def __iter__(self):
            for number in super().__iter__():
                yield self.built[number]

    ranks = []
    for rank in range(3):
        seed_all(rank)
        loader = KINDS[kind](45)
        if kind == "generator":
            loader.sampler.generator.manual_seed(rank)
        if kind == "own sampler":
            loader = DataLoader(Noisy(45), batch_size=6, sampler=Built(45))
        ranks.append(Rank(loader, rank, 3, None))
    torch.save(ranks[0].source.order_state(), tmp_path / "order.pth")
    for rank in ranks[1:]:
        rank.source.load_order_state(torch.load(tmp_path / "order.pth", weights_only=True))
    found, _ = train(ranks, passes=2)
    if kind != "generator":
        assert all(sorted(numbers(one)) == list(range(45)) for one in found)


def test_a_training_without_epochs_continues_from_pass_to_pass():
    def run(size):
        sources = [rank.source for rank in start(lambda: KINDS["random"](20), size, order_of())]
        groups = [source.epoch(2, 7) for source in sources]
        found = []
        for parts in zip(*groups, strict=True):
            shares = [source.shares() for source in sources]
            for number in range(len(parts[0])):
                batch = []
                for part, share in zip(parts, shares, strict=True):
                    batch += part[number][0].tolist()[: share[number].own]
                found.append(batch)
        return found

    assert run(1) == run(3)
    assert len(run(2)) == 14


def test_other_data_is_shared_in_the_same_way():
    ranks = start(lambda: KINDS["random"](45), 2, order_of())
    train(ranks, passes=1)
    for rank in ranks:
        rank.source.replace(KINDS["list"](20))
        rank.groups = None
    found, _ = train(ranks, passes=1)
    assert numbers(found[0]) == list(range(20))


def test_data_that_is_not_shared_has_no_shares():
    source = Stream([1, 2], "train_data")
    assert list(source.groups(1)) == [[1], [2]]
    assert source.shares() is None and source.order.shared is None
    assert "order" not in source.state_dict()


def test_each_rank_may_have_its_own_data():
    class Own(list):
        def shard(self, rank, size):
            return Own(self[rank::size])

    sources = [Stream(Own(torch.arange(12).split(2)), "train_data") for _ in range(3)]
    found = []
    for rank, source in enumerate(sources):
        source.share_among(rank, 3)
        for (batch,) in source.groups(1):
            assert source.shares() == [Share(2, None)]
            found += batch.tolist()
        assert source.num_batches == 2
        assert "only on the same number of processes" in source.inexact
    assert sorted(found) == list(range(12))


def test_another_number_of_shards_is_reported(caplog):
    class Own(IterableDataset):
        def shard(self, rank, size):
            self.part = rank, size

        def __iter__(self):
            return iter(range(self.part[0], 24, self.part[1]))

    def source(rank, size):
        made = Stream(DataLoader(Own(), batch_size=2), "train_data")
        made.share_among(rank, size, order_of())
        return made

    first = source(1, 2)
    groups = first.groups(1)
    next(groups)
    state = first.state_dict()
    source(1, 2).load_state_dict(state)
    assert not caplog.records
    source(0, 3).load_state_dict(state)
    assert "processes: 2 -> 3" in caplog.text


def test_a_batch_smaller_than_the_number_of_ranks_is_rejected_for_training_only():
    def source():
        return Stream(DataLoader(range(8), batch_size=3), "train_data")

    with pytest.raises(DataError, match="batches of 3 samples for 4 processes"):
        source().share_among(0, 4)
    source().share_among(0, 4, is_training=False)
    source().share_among(0, 3)
