"""A plain loop over a DataLoader, and the same read by a `Stream` that is cut off and resumed."""

import io
import random
from itertools import islice

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, Sampler, get_worker_info

from hookloop.data.random.states import GeneratorStates, seed_all
from hookloop.data.stream import Stream


class Noisy(Dataset):
    """Samples with numbers from all three generators, also those that hold back a normal number."""

    def __init__(self, count=11):
        self.count = count
        self.offset = 0

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        info = get_worker_info()
        worker = None if info is None else (info.id, info.num_workers, info.seed)
        numbers = torch.rand(2).tolist(), np.random.randn(), random.gauss(0, 1)
        return {"index": int(index), "noise": numbers, "worker": worker, "offset": self.offset}


class NoisyGroups(Noisy):
    """Loads a batch at once."""

    def __getitems__(self, indices):
        shift = random.random()
        return [self[index] | {"shift": shift} for index in indices]


class Backwards(Sampler):
    """A sampler of a user's own, whose order is drawn when the pass starts."""

    def __init__(self, count):
        self.count = count

    def __iter__(self):
        order = np.random.permutation(self.count).tolist()
        return iter(order[::-1])

    def __len__(self):
        return self.count


def seed_by_number(worker):
    """Seed two of the generators and change the data set, as many projects do."""
    np.random.seed(70 + worker)
    random.seed(7 + worker)
    get_worker_info().dataset.offset = worker


def draw_and_collate(samples):
    """Make a batch with a number of its own."""
    return samples, torch.randint(1000, ()).item()


def make_loader(**options):
    """Make a loader of a few samples; options of DataLoader, and the class of the data set."""
    kind = options.pop("kind", Noisy)
    return DataLoader(kind(), **({"batch_size": 2, "collate_fn": list} | options))


def read_plainly(make, passes, size=1, seed=3):
    """Read a loader as everybody does, drawing a number in between as a model would."""
    seed_all(seed)
    loader = make()
    read = []
    for _ in range(passes):
        batches = iter(loader)
        groups = iter(lambda batches=batches: list(islice(batches, size)), [])
        read.append([(group, torch.rand(()).item()) for group in groups])
    return read


def read_cut(make, passes, cuts=(), size=1, seed=3):
    """Read the same in groups; continue from a checkpoint after each of these numbers of them."""
    seed_all(seed)
    source = Stream(make(), "train_data", seed_samples="workers")
    groups, complete = 0, [[]]
    try:
        while len(complete) <= passes:
            for group in source.groups(size):
                groups += 1
                complete[-1].append((group, torch.rand(()).item()))
                if groups in cuts:
                    source = _resumed(source, make)
                    break
            else:
                complete.append([])
    finally:
        source.close()
    return complete[:-1]


def _resumed(source, make):
    file, now = io.BytesIO(), GeneratorStates.now()
    torch.save(source.state_dict(), file)
    source.close()
    file.seek(0)
    seed_all(99)  # Nothing may depend on the generators of the new process.
    other = Stream(make(), "train_data", seed_samples="workers")
    other.load_state_dict(torch.load(file, weights_only=True))
    now.restore()
    return other
