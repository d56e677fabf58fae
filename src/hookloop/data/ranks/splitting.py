"""Split a batch into smaller ones, along its samples."""

from __future__ import annotations

from hookloop.data.batch import count_samples
from hookloop.data.description import describe
from hookloop.data.ranks.cut import Cut
from hookloop.errors import DataError


class _Part(Cut):
    """One of the parts of a batch; it is cut as a rank cuts its own."""

    def _error(self, what: str) -> DataError:
        return DataError(
            f"A batch does not fit into memory, and it cannot be split: {what}. Make the batches "
            "smaller and write accumulate= as a number, or give batches of tensors, lists and "
            "mappings whose first dimension is that of the samples.",
            argument="accumulate",
        )


def split_batch(batch: object, parts: int) -> list[object]:
    """Split a batch into so many parts, as equal as possible; none is without a sample.

    Tensors, arrays and lists of samples are cut, whatever they are nested in.

    Raises:
        DataError: If something in the batch belongs to the samples in a way that is not known.

    >>> import torch
    >>> [part["x"].tolist() for part in split_batch({"x": torch.arange(5)}, 2)]
    [[0, 1, 2], [3, 4]]
    """
    count = count_samples(batch)
    if count is None:
        raise _Part(0, 1)._error(f"nothing in {describe(batch)} can be counted")
    number = max(1, min(parts, count))
    return [_Part(index, number).batch(batch) for index in range(number)]
