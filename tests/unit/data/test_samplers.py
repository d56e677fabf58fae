import random
from collections import deque

import numpy as np
import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler, Sampler

from hookloop.data.random.apart import RandomStream
from hookloop.data.random.states import GeneratorStates, seed_all
from hookloop.data.stream import Stream

COUNT = 12


class Own(Sampler):
    def __init__(self):
        self.prepare()

    def prepare(self):
        pass

    def __len__(self):
        return COUNT


class Lazy(Own):
    """Draws as it goes, and keeps something of what it drew before."""

    def __iter__(self):
        kept = 0
        for _ in range(COUNT):
            drawn = random.randrange(5) + np.random.randint(5) + int(torch.randint(5, ()))
            drawn += int(abs(np.random.randn() + random.gauss(0, 1)) * 100)
            kept = (kept + drawn) % COUNT
            yield kept


class Refilling(Own):
    """Draws now and then, a few numbers at a time."""

    def __iter__(self):
        for begin in range(0, COUNT, 5):
            some = list(range(begin, min(begin + 5, COUNT)))
            random.shuffle(some)
            yield from some


class Counting(Own):
    """Shuffles by a number of its own."""

    def prepare(self):
        self.passes = 0

    def __iter__(self):
        self.passes += 1
        generator = torch.Generator().manual_seed(self.passes)
        yield from torch.randperm(COUNT, generator=generator).tolist()


class CountingAtTheEnd(Own):
    """Does something when its last index has been taken."""

    def prepare(self):
        self.passes = 0

    def __iter__(self):
        generator = torch.Generator().manual_seed(self.passes)
        yield from torch.randperm(COUNT, generator=generator).tolist()
        self.passes += 1


class Shuffling(Own):
    """Keeps more than numbers, and returns it by itself."""

    def prepare(self):
        self.order = list(range(COUNT))

    def __iter__(self):
        random.shuffle(self.order)
        yield from self.order

    def state_dict(self):
        return {"order": list(self.order)}

    def load_state_dict(self, state):
        self.order = list(state["order"])


class ShufflingInPlace(Own):
    """Shuffles what it keeps, pass after pass."""

    def prepare(self):
        self.order = np.arange(COUNT)

    def __iter__(self):
        np.random.shuffle(self.order)
        yield from self.order


class WithGenerators(Own):
    """Has generators of its own, under unusual names."""

    def prepare(self):
        self.numpy = np.random.default_rng(3)
        self.old = np.random.RandomState(3)
        self.python = random.Random(3)
        self.torch = torch.Generator().manual_seed(3)

    def __iter__(self):
        for _ in range(COUNT):
            drawn = int(self.numpy.integers(COUNT)) + self.python.randrange(COUNT)
            drawn += int(abs(self.old.randn()) * 100)
            yield (drawn + int(torch.randint(COUNT, (), generator=self.torch))) % COUNT


class HardExamples(Own):
    """Draws by losses that it is told, and keeps away from what it gave lately."""

    def prepare(self):
        self.losses = torch.ones(COUNT)
        self.times = np.zeros(COUNT)
        self.lately = deque(maxlen=3)
        self.seen = set()
        self.best = {"at": [0]}

    def __iter__(self):
        for _ in range(COUNT):
            weights = self.losses.clone()
            weights[list(self.lately)] = 0
            index = int(torch.multinomial(weights, 1))
            self.lately.append(index)
            self.seen.add(index)
            yield index

    def learn(self, batch):
        self.losses[batch] = torch.rand(len(batch)) * (1 + len(self.seen))
        self.times[batch] += 1
        self.best["at"].append(int(self.losses.argmax()))


class HardBatches(HardExamples):
    """Does so with batches."""

    def __len__(self):
        return COUNT // 2

    def __iter__(self):
        for _ in range(COUNT // 2):
            yield torch.multinomial(self.losses, 2).numpy()


class ByTheTraining(Own):
    """Looks at what the training has come to."""

    weight = torch.zeros(())

    def __iter__(self):
        for index in range(COUNT):
            yield (index + int(self.weight * 1000)) % COUNT


class Noisy(Dataset):
    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        return index, torch.rand(()) + random.random() + np.random.randn()


SAMPLERS = [
    Lazy,
    Refilling,
    Counting,
    CountingAtTheEnd,
    Shuffling,
    ShufflingInPlace,
    WithGenerators,
    HardExamples,
    ByTheTraining,
]


def loader_of(sampler, workers=0, persistent=False):
    options = {"num_workers": workers, "persistent_workers": persistent}
    if sampler is HardBatches:
        return DataLoader(Noisy(), batch_sampler=sampler(), **options)
    if sampler is RandomSampler:
        generator = torch.Generator().manual_seed(7)
        own = RandomSampler(range(COUNT), replacement=True, num_samples=99, generator=generator)
        return DataLoader(Noisy(), batch_size=8, sampler=own, **options)
    if sampler is BatchSampler:
        return DataLoader(Noisy(), batch_sampler=BatchSampler(Lazy(), 2, False), **options)
    return DataLoader(Noisy(), batch_size=2, sampler=sampler(), **options)


class Life:
    """A training in small: a weight that follows the data and random numbers."""

    def __init__(self, sampler, **options):
        self.source = Stream(loader_of(sampler, **options), "data")
        self.sampler = self.source.data.batch_sampler
        if sampler is not HardBatches:
            self.sampler = self.source.data.sampler
        self.weight = torch.zeros(())
        self.seen = []
        self.made = 0

    def train(self, until):
        while self.made < until:
            for ((indices, noise),) in self.source.groups(1):
                self.weight += noise.sum() + torch.rand(()) + random.random() + np.random.randn()
                self.sampler.weight = self.weight
                if hasattr(self.sampler, "learn"):
                    self.sampler.learn(indices.tolist())
                self.seen.append((indices.tolist(), self.weight.item()))
                self.made += 1
                if self.made == until:
                    return self
        return self

    def save(self, path):
        state = [self.source.state_dict(), self.weight, self.made, GeneratorStates.now().state]
        torch.save(state, path)

    def load(self, path):
        state, self.weight, self.made, randomness = torch.load(path, weights_only=True)
        self.source.load_state_dict(state)
        self.sampler.weight = self.weight
        GeneratorStates(randomness).restore()
        return self


def check_each_position(tmp_path, sampler, positions, until, **options):
    seed_all(1)
    whole = Life(sampler, **options).train(until)
    for position in positions:
        seed_all(1)
        Life(sampler, **options).train(position).save(tmp_path / "state.pth")
        seed_all(2)
        resumed = Life(sampler, **options).load(tmp_path / "state.pth")
        # Saved again at once, or later, before what was ahead has been used up.
        resumed.train(min(position + 1, until)).save(tmp_path / "state.pth")
        again = Life(sampler, **options).load(tmp_path / "state.pth").train(until)
        assert resumed.seen + again.seen == whole.seen[position:], position


@pytest.mark.slow
@pytest.mark.parametrize("sampler", [*SAMPLERS, HardBatches, BatchSampler, RandomSampler])
def test_a_sampler_continues_where_it_was_killed_at_any_position(sampler, tmp_path, caplog):
    check_each_position(tmp_path, sampler, range(1, 14), 14)
    if sampler is not ByTheTraining:  # Nobody knows that it looks elsewhere.
        assert not caplog.records


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sampler", "persistent"),
    [
        (Lazy, False),
        (Lazy, True),
        (CountingAtTheEnd, False),
        (Shuffling, True),
        (WithGenerators, False),
        (HardExamples, False),
        (HardBatches, True),
        (RandomSampler, False),
    ],
)
def test_so_does_one_that_is_ahead_because_of_workers(sampler, persistent, tmp_path):
    positions = (1, 5, 8)
    check_each_position(tmp_path, sampler, positions, 13, workers=2, persistent=persistent)


def test_what_a_sampler_draws_later_does_not_move_the_generators():
    def draw():
        return torch.rand(()).item(), random.gauss(0, 1), np.random.randn()

    seed_all(1)
    batches = Stream(DataLoader(range(COUNT), batch_size=2, sampler=Lazy()), "data").groups(1)
    next(batches)
    before = GeneratorStates.now()
    expected = draw()
    before.restore()
    next(batches)
    assert draw() == expected


def test_a_sampler_that_draws_only_at_first_leaves_all_as_by_hand():
    seed_all(1)
    by_hand = [(indices.tolist(), noise.tolist()) for indices, noise in loader_of(ShufflingInPlace)]
    seed_all(1)
    life = Stream(loader_of(ShufflingInPlace), "data")
    assert [(i.tolist(), noise.tolist()) for ((i, noise),) in life.groups(1)] == by_hand


def test_a_sampler_that_does_not_repeat_itself_is_named(tmp_path, caplog):
    class Drifting(Own):
        drawn = 0  # Shared by all: as a service that deals out samples.

        def __iter__(self):
            for _ in range(COUNT):
                Drifting.drawn += 1
                yield Drifting.drawn % COUNT

    Life(Drifting).train(3).save(tmp_path / "state.pth")
    Life(Drifting).load(tmp_path / "state.pth").train(4)
    assert "The sampler does not repeat itself" in caplog.text


def test_a_random_stream_is_saved_and_restored():
    def draw():
        return random.gauss(0, 1), np.random.randn(), torch.randn(3).tolist()

    own = RandomStream(3)
    with own:
        draw()
    state = own.state_dict()
    with own:
        expected = draw()
    other = RandomStream(4)
    other.load_state_dict(state)
    with other:
        assert draw() == expected
