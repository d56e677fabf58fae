import os
import signal

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

from hookloop.data.source import Source

pytestmark = pytest.mark.slow


class Signalled(Dataset):
    """Samples whose worker sends itself signals before it returns the first one."""

    def __init__(self, *signals):
        self.signals = signals

    def __len__(self):
        return 4

    def __getitem__(self, index):
        if index == 0:
            for number in self.signals:
                os.kill(os.getpid(), number)
        return torch.tensor(index)


class SignalledStream(IterableDataset):
    def __iter__(self):
        return map(Signalled(signal.SIGTERM).__getitem__, range(4))


@pytest.mark.parametrize(
    "data",
    [Signalled(signal.SIGTERM), Signalled(signal.SIGINT, signal.SIGINT), SignalledStream()],
    ids=["map-style", "ctrl-c", "iterable"],
)
def test_a_worker_outlives_the_signal_that_ends_a_run(data):
    source = Source(DataLoader(data, num_workers=1), "train_data")
    assert [int(batch) for batch in source] == [0, 1, 2, 3]


def test_a_second_sigterm_ends_a_worker():
    source = Source(DataLoader(Signalled(signal.SIGTERM, signal.SIGTERM), num_workers=1), "data")
    with pytest.raises(RuntimeError, match="exited unexpectedly|killed by signal"):
        list(source)


class Chosen(Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        return torch.tensor(get_worker_info().dataset.chosen)


def choose(worker):
    get_worker_info().dataset.chosen = 10 + worker


def test_the_loaders_own_preparation_of_workers_is_kept():
    loader = DataLoader(Chosen(), num_workers=1, worker_init_fn=choose)
    assert [int(batch) for batch in Source(loader, "data")] == [10, 10]
    assert loader.worker_init_fn is choose
