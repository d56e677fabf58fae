"""The part of each global batch that one rank reads.

A rank takes a contiguous cut of each global batch, so that the cuts of all ranks in order are the
batch. If a batch has fewer samples than there are ranks, a rank with an empty cut still reads the
first sample, because it has to take part in the update; that sample does not count.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

import numpy as np
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from hookloop.data.batch import are_samples, count_samples, listed_samples, size_of
from hookloop.data.description import describe
from hookloop.data.ranks.place import Share
from hookloop.errors import DataError
from hookloop.parallel.world import World

T = TypeVar("T")

_KEPT = (str, bytes, bool, int, float, complex, np.generic, type(None))
"""Values that belong to the batch as a whole."""


class Cut:
    """Takes one rank's part of each global batch.

    Args:
        rank: The number of the rank, from 0.
        size: How many ranks there are.
        name: The name of the data in messages.

    Attributes:
        shares: One share for each part that was read, in the order of reading.
        parts: What this rank reads of each batch, one after the other: its own cut, or those of its
            logical ranks.
        logical: How many logical ranks all processes have together; 0 for none.

    >>> [Cut(rank, 3).indices([7, 5, 9, 1]) for rank in range(3)]
    [[7, 5], [9], [1]]
    """

    def __init__(self, rank: int, size: int, name: str = "data") -> None:
        self.rank = rank
        self.size = size
        self.name = name
        self.shares: deque[Share] = deque()
        self.parts: Sequence[Cut] = (self,)
        self.logical = 0
        self._kinds: dict[str, bool] = {}

    @classmethod
    def of(cls, world: World, name: str) -> Cut:
        """Return the cut of this process: one part, or one for each of its logical ranks.

        >>> from hookloop.parallel.world import World
        >>> [part.indices([7, 5, 9, 1]) for part in Cut.of(World(1, 2, logical=4), "data").parts]
        [[9], [1]]
        """
        cut = cls(world.rank, world.size, name)
        cut.logical = world.logical
        if world.logical:
            cut.parts = [cls(leaf, world.logical, name) for leaf in world.leaves]
            for part in cut.parts:
                part.shares = cut.shares
        return cut

    def place(self, count: int) -> tuple[int, int]:
        """Return the first and the end of this rank's cut of so many samples; may be empty."""
        each, left = divmod(count, self.size)
        first = self.rank * each + min(self.rank, left)
        return first, first + each + (self.rank < left)

    def indices(self, batch: list[T]) -> list[T]:
        """Cut a list of indices or samples; an empty cut becomes the first of them."""
        return batch[self._take(len(batch))]

    def batch(self, batch: object) -> object:
        """Cut a whole batch, whatever its tensors, arrays and lists of samples are nested in."""
        count = count_samples(batch)
        if self.size == 1:  # Also for what cannot be cut.
            count = size_of(batch)
            self.shares.append(Share(count, count))
            return batch
        if count is None or isinstance(batch, PackedSequence):
            raise self._error(f"its batch is {describe(batch)}, and nothing in it can be cut")
        kept = self._take(count)
        # One sample is the whole batch, for every rank.
        return batch if count < 2 else self._cut(batch, count, kept, "")

    def all(self, batches: Iterable[object]) -> Iterator[object]:
        """Cut whole batches one after the other, each into the parts of this rank."""
        parts = self.parts
        return (part.batch(batch) for batch in batches for part in parts)

    def count(self, batch: object) -> object:
        """Queue the share of a batch that is this rank's own as a whole, and return the batch."""
        self.shares.append(Share(size_of(batch), None))
        return batch

    def _take(self, count: int) -> slice:
        first, end = self.place(count)
        self.shares.append(Share(end - first, count))
        return slice(first, end) if end > first else slice(0, 1)

    def _cut(self, value: Any, count: int, kept: slice, path: str) -> object:  # noqa: ANN401
        def cut(part: object, name: object) -> object:
            return self._cut(part, count, kept, f"{path}[{name!r}]")

        if isinstance(value, PackedSequence):
            raise self._error(f"its batch{path} is a PackedSequence, which cannot be cut")
        if isinstance(shape := getattr(value, "shape", None), tuple) and shape:
            return self._rows(value, count, kept, path)
        if isinstance(value, tuple | list):
            if self._holds_samples(value, count, path):
                return value[kept]
            parts = [cut(part, number) for number, part in enumerate(value)]
            make = cast("Callable[..., object]", type(value))
            return make(*parts) if hasattr(value, "_fields") else make(parts)
        if isinstance(value, Mapping):
            return _with_items(value, {key: cut(part, key) for key, part in value.items()})
        if is_dataclass(value) and not isinstance(value, type):
            names = [field.name for field in fields(value) if field.init]
            return replace(value, **{name: cut(getattr(value, name), name) for name in names})
        if isinstance(value, (*_KEPT, Tensor, np.ndarray)):  # Tensors that are one number.
            return value
        raise self._error(f"its batch{path} is {describe(value)}, which cannot be cut")

    def _rows(self, value: Any, count: int, kept: slice, path: str) -> object:  # noqa: ANN401
        if value.shape[0] != count:
            raise self._error(
                f"its batch{path} is {describe(value)} in a batch of {count} samples: the first "
                "dimension must be that of the samples"
            )
        try:
            return cast("object", value[kept])
        except (TypeError, RuntimeError, NotImplementedError) as error:
            raise self._error(f"its batch{path} is {describe(value)}: {error}") from error

    def _holds_samples(self, values: Any, count: int, path: str) -> bool:  # noqa: ANN401
        """Return whether a list holds one value for each sample, and not parts of the batch."""
        if hasattr(values, "_fields") or not values:
            return False
        if (known := self._kinds.get(path)) is not None and (len(values) == count or not known):
            return known
        holds = len(values) == count
        if holds and listed_samples(values) is not None:
            rows = isinstance(values[0], tuple | list)
            holds = not rows or are_samples(values)
        # Each of these could also be cut by itself. At the top they are taken as parts, as when
        # the samples of a batch are counted.
        elif holds and all(count_samples(value) == count for value in values):
            if path:
                raise self._error(
                    f"its batch{path} is a {type(values).__name__} of {count} values with "
                    f"{count} rows each, in a batch of {count} samples: it is not clear whether "
                    "each value is a sample"
                )
            return False
        # A smaller batch may be unclear where a full one was not.
        self._kinds[path] = holds
        return holds

    def _error(self, what: str) -> DataError:
        return DataError(
            f"{self.name} cannot be cut for {self.size} processes: {what}. Use a DataLoader over "
            "a map-style data set, of which each process loads its own samples, or give the data "
            "a method shard(rank, size) that returns the data of one process.",
            argument=self.name.partition("[")[0],
        )


def _with_items(value: Mapping[Any, object], items: dict[Any, object]) -> object:
    """Make a mapping of the same type with other values."""
    if type(value) is dict:
        return items
    # The mappings of tokenizers have more than their items, and take other arguments.
    if isinstance(value, MutableMapping):
        copied = copy.copy(value)
        copied.update(items)
        return copied
    return cast("Callable[..., object]", type(value))(items)
