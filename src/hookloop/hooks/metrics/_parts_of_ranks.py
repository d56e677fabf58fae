"""Parts of batches that ranks have collected, put together in the order of the data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import NamedTuple

import torch
from torch import Tensor

Part = Tensor | list[object]


class Position(NamedTuple):
    """Where a part belongs: ranks cut each global batch in their order.

    Attributes:
        iter: Iterations done when it was read.
        batch: The number of the global batch.
        rank: Whose part it is.
        samples: How many samples of the batch it has.
    """

    iter: int
    batch: int
    rank: int
    samples: int


Placed = Mapping[str, Mapping[str, list[tuple[Position, Part]]]]
"""Parts with their positions, by stream and variable."""


def join_ranks(of_ranks: Iterable[Placed]) -> dict[str, dict[str, list[Part]]]:
    """Join what ranks have collected into what a single process would have.

    A number of a whole batch becomes the mean over the parts of the batch, by their samples.

    >>> first = {"val": {"x": [(Position(9, 1, 0, 1), ["a"]), (Position(9, 2, 0, 1), ["d"])]}}
    >>> second = {"val": {"x": [(Position(9, 1, 1, 2), ["b", "c"])]}}
    >>> join_ranks([first, second])
    {'val': {'x': [['a'], ['b', 'c'], ['d']]}}
    """
    pairs: dict[str, dict[str, list[tuple[Position, Part]]]] = {}
    for streams in of_ranks:
        for stream, variables in streams.items():
            for name, some in variables.items():
                pairs.setdefault(stream, {}).setdefault(name, []).extend(some)
    return {
        stream: {name: _in_order(some) for name, some in variables.items()}
        for stream, variables in pairs.items()
    }


def _in_order(pairs: list[tuple[Position, Part]]) -> list[Part]:
    pairs.sort(key=lambda pair: pair[0][:3])  # Stable: several updates may see the same batch.
    values: list[Part] = []
    for _, of_batch in groupby(pairs, key=lambda pair: pair[0][:2]):
        values += _of_batch(list(of_batch))
    return values


def _of_batch(pairs: list[tuple[Position, Part]]) -> list[Part]:
    numbers = [part for _, part in pairs if isinstance(part, Tensor) and part.ndim == 0]
    ranks = {place.rank for place, _ in pairs}
    # A number that a rank has several times is one for each update: they are not averaged.
    if len(numbers) < len(pairs) or len(ranks) < len(pairs) or not numbers[0].is_floating_point():
        return [part for _, part in pairs]
    weights = torch.tensor([place.samples for place, _ in pairs], dtype=torch.float64)
    mean = (torch.stack(numbers).double() * weights).sum() / weights.sum()
    return [mean.to(numbers[0].dtype)]
