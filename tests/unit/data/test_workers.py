import os
import signal
import subprocess
import sys
import textwrap

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

from hookloop.data.stream import Stream
from hookloop.parallel.signals import STOP_SIGNALS

pytestmark = pytest.mark.slow

LIMIT = 60
"""Seconds for a whole script, most of which a busy machine needs to import torch."""


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


@pytest.mark.parametrize("data", [Signalled(signal.SIGTERM), SignalledStream()])
def test_a_worker_outlives_the_signal_that_ends_a_run(data):
    source = Stream(DataLoader(data, num_workers=1), "train_data")
    assert [int(batch) for batch in source] == [0, 1, 2, 3]


def test_a_worker_outlives_every_such_signal_however_often_it_comes():
    signals = [getattr(signal, name) for name in (*STOP_SIGNALS, *STOP_SIGNALS)]
    source = Stream(DataLoader(Signalled(*signals), num_workers=1), "train_data")
    assert [int(batch) for batch in source] == [0, 1, 2, 3]


class Chosen(Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        return torch.tensor(get_worker_info().dataset.chosen)


def choose(worker):
    get_worker_info().dataset.chosen = 10 + worker


def test_the_loaders_own_worker_init_fn_is_called():
    loader = DataLoader(Chosen(), num_workers=1, worker_init_fn=choose)
    assert [int(batch) for batch in Stream(loader, "data")] == [10, 10]
    assert loader.worker_init_fn is choose


class Numbers(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return torch.tensor([index, os.getpid()])


@pytest.mark.parametrize("persistent", [False, True])
def test_a_source_that_is_closed_has_no_workers_and_can_be_read_again(persistent):
    loader = DataLoader(Numbers(), num_workers=1, persistent_workers=persistent)
    source = Stream(loader, "data")
    reading = iter(source)  # Still referred to, as by the traceback of an exception.
    worker = int(next(reading)[0, 1])
    source.close()
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)
    source.close()
    assert [int(batch[0, 0]) for batch in source] == list(range(8))
    source.close()


def test_a_source_closed_in_the_middle_continues_at_its_position():
    source = Stream(DataLoader(Numbers(), num_workers=1, persistent_workers=True), "data")
    begun = [int(group[0][0, 0]) for group in source.epoch(1, iterations=3)]
    source.close()
    rest = [int(group[0][0, 0]) for group in source.epoch(1, iterations=7)]
    source.close()
    assert (begun, rest) == ([0, 1, 2], [3, 4, 5, 6, 7, 0, 1])


HANGING = """
    import os, signal, sys, threading, time
    import torch
    from torch.utils.data import DataLoader, Dataset
    from hookloop.data.stream import Stream

    class Hanging(Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            if index:
                threading.Event().wait()
            return torch.tensor(os.getpid())

    loader = DataLoader(Hanging(), num_workers=2, persistent_workers={persistent})
    source = Stream(loader, "data")
    reading = iter(source)
    next(reading)
    {ending}
"""


def end_of(script: str) -> subprocess.CompletedProcess[str]:
    """Run a script to its end, and that of its workers: until then they hold its output open."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
    )


@pytest.mark.parametrize(
    ("ending", "code", "persistent"),
    [
        ("", 0, True),
        ("", 0, False),
        ("source.close()", 0, True),
        ("del reading, source, loader", 0, False),
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL, True),
    ],
)
def test_workers_that_hang_end_with_the_process(ending, code, persistent):
    done = end_of(HANGING.format(ending=ending, persistent=persistent))
    assert done.returncode == code, done.stderr
    assert done.stderr == ""
