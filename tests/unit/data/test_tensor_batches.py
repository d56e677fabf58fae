import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    RandomSampler,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
)

from hookloop.data.reading.loader import make_gather
from hookloop.data.stream import Stream

DATA = TensorDataset(
    torch.randn(23, 4, generator=torch.Generator().manual_seed(0)),
    torch.arange(23),
    torch.rand(23, 2, 2, generator=torch.Generator().manual_seed(1)).double(),
)

LOADERS = {
    "in order": lambda: DataLoader(DATA, batch_size=4),
    "shuffled": lambda: DataLoader(DATA, batch_size=4, shuffle=True),
    "last dropped": lambda: DataLoader(DATA, batch_size=4, shuffle=True, drop_last=True),
    "own generator": lambda: DataLoader(
        DATA, batch_size=4, shuffle=True, generator=torch.Generator().manual_seed(3)
    ),
    "subset": lambda: DataLoader(Subset(DATA, [5, 1, 7, 7, 2]), batch_size=2, shuffle=True),
    "weighted": lambda: DataLoader(
        DATA, batch_size=4, sampler=WeightedRandomSampler(torch.arange(23.0), 15)
    ),
    "batch sampler": lambda: DataLoader(
        DATA, batch_sampler=BatchSampler(RandomSampler(DATA, replacement=True), 5, False)
    ),
}


@pytest.mark.parametrize("name", LOADERS)
@pytest.mark.parametrize("way", ["training", "evaluation"])
def test_batches_order_and_random_numbers_are_those_of_the_plain_loader(name, way):
    torch.manual_seed(5)
    plain, theirs = LOADERS[name](), []
    for _ in range(2):
        theirs += [(batch, torch.rand(1)) for batch in plain]
    torch.manual_seed(5)
    loader, ours = LOADERS[name](), []
    assert make_gather(loader) is not None
    source = Stream(loader, "data")
    for _ in range(2):
        batches = source if way == "evaluation" else (group[0] for group in source.groups(1))
        ours += [(batch, torch.rand(1)) for batch in batches]
    assert len(ours) == len(theirs) == 2 * len(plain)
    for (batch, drawn), (other, theirs_drawn) in zip(ours, theirs, strict=True):
        assert type(batch) is type(other)
        assert torch.equal(drawn, theirs_drawn)
        for part, other_part in zip(batch, other, strict=True):
            assert torch.equal(part, other_part)
            assert (part.dtype, part.stride()) == (other_part.dtype, other_part.stride())


class Noisy(TensorDataset):
    def __getitem__(self, index):
        return tuple(tensor + 1 for tensor in super().__getitem__(index))


class OwnLoader(DataLoader):
    pass


@pytest.mark.parametrize(
    "loader",
    [
        DataLoader(Noisy(torch.ones(4, 1)), batch_size=2),
        DataLoader(DATA, batch_size=2, collate_fn=lambda samples: samples),
        DataLoader(DATA, batch_size=None),
        DataLoader(DATA, batch_size=2, num_workers=1),
        DataLoader([1, 2, 3], batch_size=2),
        OwnLoader(DATA, batch_size=2),
        DataLoader(TensorDataset(torch.ones(4, 1, requires_grad=True)), batch_size=2),
    ],
    ids=["subclass", "collate", "no batches", "workers", "list", "own loader", "gradients"],
)
def test_a_loader_that_does_anything_else_is_read_as_it_is(loader):
    assert make_gather(loader) is None
