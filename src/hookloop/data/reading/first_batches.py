"""The first batches of some data, kept in memory: what ``overfit=`` trains on again and again."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from torch.utils.data import BatchSampler, DataLoader, IterableDataset

from hookloop.data.random.states import generators_kept, seed_all
from hookloop.data.reading.current import nothing_read


def first_batches(data: Iterable[object], count: int, name: str = "train_data") -> list[object]:
    """Read the first batches of data, not shuffled where the order is a sampler's.

    They are the same in every process: what is drawn while they are read begins with a fixed seed,
    and leaves no trace in the generators.

    Args:
        data: A DataLoader, a list, any iterable. A DataLoader over a map-style data set is read in
            the order of the data set; anything else in its own order, as it is first read.
        count: How many batches, at most.
        name: Its name in messages.

    >>> first_batches([1, 2, 3], 2)
    [1, 2]
    """
    generator = getattr(data, "generator", None)
    with generators_kept([generator] if generator is not None else []):
        seed_all(0)
        batches = list(islice(_in_order(data), count))
    if not batches:
        raise nothing_read(data, name)
    return batches


def _in_order(data: Iterable[object]) -> Iterable[object]:
    """Return the data without the order of its sampler, and without workers, where it has them."""
    if not isinstance(data, DataLoader) or isinstance(data.dataset, IterableDataset):
        return data
    batches = data.batch_sampler
    # A batch sampler of the user's own decides by itself which samples make a batch.
    if batches is not None and type(batches) is not BatchSampler:
        return data
    return DataLoader(
        data.dataset,
        batch_size=None if batches is None else batches.batch_size,
        collate_fn=data.collate_fn,
    )
