"""``mmengine.dataset``: samplers that split one order among the processes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sized

import torch
from torch.utils.data import Sampler

from hookloop_mmengine.dist import get_dist_info, sync_random_seed


class DefaultSampler(Sampler[int]):
    """Yield every sample once per epoch, in an order that depends on seed and epoch only.

    Args:
        dataset: The data.
        shuffle: Whether the order is random.
        seed: The seed of the order; by default the processes agree on one.
        round_up: Whether samples are repeated until each process gets the same number.
    """

    def __init__(
        self, dataset: Sized, shuffle: bool = True, seed: int | None = None, round_up: bool = True
    ) -> None:
        self.rank, self.world_size = get_dist_info()
        self.dataset = dataset
        self.shuffle = shuffle
        self.seed = sync_random_seed() if seed is None else seed
        self.epoch = 0
        self.round_up = round_up
        # Without rounding up, the first ranks get one sample more than the others.
        share = (len(dataset) - (0 if round_up else self.rank)) / self.world_size
        self.num_samples = math.ceil(share)
        self.total_size = self.num_samples * self.world_size if round_up else len(dataset)

    def __iter__(self) -> Iterator[int]:
        if self.shuffle:
            # A generator of its own: the order must not depend on other random numbers.
            generator = torch.Generator().manual_seed(self.seed + self.epoch)
            indices: list[int] = torch.randperm(len(self.dataset), generator=generator).tolist()
        else:
            indices = list(range(len(self.dataset)))
        if self.round_up:
            # A tiny dataset may have to be repeated more than once to reach the world size.
            repeats = self.total_size // max(len(indices), 1) + 1
            indices = (indices * repeats)[: self.total_size]
        return iter(indices[self.rank : self.total_size : self.world_size])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, which changes the order."""
        self.epoch = epoch


class InfiniteSampler(Sampler[int]):
    """Yield samples forever, for trainings that count iterations.

    Args:
        dataset: The data.
        shuffle: Whether each pass has a random order.
        seed: The seed of the order; by default the processes agree on one.
    """

    def __init__(self, dataset: Sized, shuffle: bool = True, seed: int | None = None) -> None:
        self.rank, self.world_size = get_dist_info()
        self.dataset = dataset
        self.shuffle = shuffle
        self.seed = sync_random_seed() if seed is None else seed
        self.size = len(dataset)

    def __iter__(self) -> Iterator[int]:
        # All processes draw the same order and each takes every n-th sample.
        return itertools.islice(self._endless(), self.rank, None, self.world_size)

    def __len__(self) -> int:
        return self.size

    def set_epoch(self, epoch: int) -> None:
        """Do nothing: the one epoch never ends."""

    def _endless(self) -> Iterator[int]:
        generator = torch.Generator().manual_seed(self.seed)
        while True:
            if self.shuffle:
                yield from torch.randperm(self.size, generator=generator).tolist()
            else:
                yield from range(self.size)
