"""`LateIterator`: the endless iterator of a loop by iterations, which starts when it is used.

MMEngine starts it when the loop is built. Then workers load batches ahead, and a sampler without
an end has moved on before the engine reads from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import torch
from mmengine.runner.loops import _InfiniteDataloaderIterator
from torch.utils.data import RandomSampler

from hookloop.dialects import GeneratorStates


class LateIterator(_InfiniteDataloaderIterator):  # type: ignore[misc] # no types in mmengine
    """An endless iterator that draws at once what it would draw, and reads later.

    Args:
        dataloader: The loader.

    Attributes:
        began: The random numbers from which the first pass draws its order.
    """

    def __init__(self, dataloader: Any) -> None:  # noqa: ANN401 - any loader
        self._dataloader = dataloader
        self._epoch = 0
        self.began = GeneratorStates.now(gpus=False)
        self._started: Iterator[object] | None = None
        _draw_as_iter_does(dataloader)

    @property
    def _iterator(self) -> Iterator[object]:
        if self._started is None:
            now = GeneratorStates.now(gpus=False)
            self.began.restore(gpus=False)
            self._started = iter(self._dataloader)
            now.restore(gpus=False)
        return self._started

    @_iterator.setter
    def _iterator(self, iterator: Iterator[object]) -> None:
        self._started = iterator


def _draw_as_iter_does(loader: Any) -> None:  # noqa: ANN401 - any loader
    """Draw the numbers that ``iter(loader)`` draws, so that what comes next is the same."""
    generator = getattr(loader, "generator", None)
    torch.empty((), dtype=torch.int64).random_(generator=generator)  # The seed of the workers.
    sampler = getattr(loader, "sampler", None)
    # Workers are sent their first batches at once, for which the order has to be drawn.
    if getattr(loader, "num_workers", 0) and isinstance(sampler, RandomSampler):
        torch.empty((), dtype=torch.int64).random_(
            generator=cast("torch.Generator | None", sampler.generator)
        )
