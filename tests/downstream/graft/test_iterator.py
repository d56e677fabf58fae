"""The iterator of a loop by iterations draws what MMEngine's draws, and reads later."""

import pytest
import torch
from mmengine.runner.loops import _InfiniteDataloaderIterator

from hookloop_mmengine.graft.iterator import LateIterator


@pytest.mark.parametrize("workers", [0, 1])
def test_it_reads_the_same_and_leaves_the_same_random_numbers(workers):
    results = []
    for kind in (_InfiniteDataloaderIterator, LateIterator):
        torch.manual_seed(0)
        data = torch.utils.data.DataLoader(
            torch.arange(6), batch_size=2, shuffle=True, num_workers=workers
        )
        iterator = kind(data)
        after = torch.rand(2).tolist()
        batches = [next(iterator).tolist() for _ in range(5)]
        results.append((after, batches[:3]))
    assert results[0] == results[1]


def test_nothing_is_read_before_it_is_used():
    read = []

    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            read.append(index)
            return index

    iterator = LateIterator(torch.utils.data.DataLoader(Data(), batch_size=2))
    assert not read
    next(iterator)
    assert read == [0, 1]
