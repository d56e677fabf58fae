"""Where batches come from: any iterable, read epoch by epoch, in groups of microbatches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sized
from itertools import islice

from hookloop.errors import DataError

Batches = Iterable[object]


class Source:
    """One iterable of batches, under the name that messages give it.

    Args:
        data: A DataLoader, a list, any iterable. One that can be read only once (a generator) ends
            the training when it ends.
        name: ``train_data``, ``val_data['clean']``, ...
    """

    def __init__(self, data: Batches, name: str) -> None:
        if isinstance(data, str | bytes | Mapping) or not isinstance(data, Iterable):
            raise DataError(f"{name} is {type(data).__name__}: it must be an iterable of batches.")
        self.data = data
        self.name = name
        if self.num_batches == 0:
            raise DataError(f"{name} is empty: it has no batch.{self._why_empty()}")

    @property
    def num_batches(self) -> int | None:
        """How many batches an epoch has, or None when only reading would tell."""
        if not isinstance(self.data, Sized):
            return None
        try:
            return len(self.data)
        except TypeError:  # A DataLoader over an iterable data set has the method but no length.
            return None

    @property
    def is_one_pass(self) -> bool:
        """Whether the data can be read only once."""
        return isinstance(self.data, Iterator)

    def groups(self, size: int) -> Iterator[list[object]]:
        """Read one epoch in groups of ``size`` microbatches; the last may be smaller."""
        batches = iter(self.data)
        if size == 1:
            for batch in batches:
                yield [batch]
            return
        while group := list(islice(batches, size)):
            yield group

    def __iter__(self) -> Iterator[object]:
        return iter(self.data)

    def set_epoch(self, epoch: int) -> None:
        """Tell a sampler that wants to know which epoch begins, so that it shuffles anew."""
        batch_sampler = getattr(self.data, "batch_sampler", None)
        for holder in (
            self.data,
            getattr(self.data, "sampler", None),
            batch_sampler,
            getattr(batch_sampler, "sampler", None),
        ):
            setter = getattr(holder, "set_epoch", None)
            if callable(setter):
                setter(epoch)
                return

    def _why_empty(self) -> str:
        dataset = getattr(self.data, "dataset", None)
        if getattr(self.data, "drop_last", False) and isinstance(dataset, Sized) and len(dataset):
            return (
                f" Its {len(dataset)} samples are fewer than one batch of "
                f"{getattr(self.data, 'batch_size', '?')}, and drop_last=True drops them."
            )
        return ""


def open_streams(data: Batches | Mapping[str, Batches] | None, name: str) -> dict[str, Source]:
    """Make sources of evaluation data: one stream without a name, or several with.

    >>> list(open_streams({"clean": [1], "noisy": [2]}, "val_data"))
    ['clean', 'noisy']
    >>> list(open_streams([1, 2], "val_data"))
    ['']
    """
    if data is None:
        return {}
    if isinstance(data, Mapping):
        return {str(key): Source(value, f"{name}['{key}']") for key, value in data.items()}
    return {"": Source(data, name)}
