"""The random numbers of a sample that a worker loads.

Workers begin their generators anew in every process, so a resumed run could never repeat them. Here
each sample's randomness follows from the pass over the data and the sample's place in it: it is the
same for any number of workers, and after a resume.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch.utils.data import Dataset


class Group(NamedTuple):
    """Indices of samples that are loaded together, with what their randomness follows from."""

    at: list[object]
    key: int
    batch: int

    def seed(self, place: int) -> int:
        """Return a seed of 64 bits for the sample at a place of the group."""
        text = f"{self.key}/{self.batch}/{place}".encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


class SeededSamples(Dataset[object]):
    """A data set that seeds Python's, NumPy's and torch's generators before it loads a sample.

    It is asked for groups, which take a fraction of the time that their samples one by one would
    take on their way to a worker.
    """

    def __init__(self, inner: Dataset[object]) -> None:
        self.inner: Any
        self.__dict__["inner"] = inner

    def __getitem__(self, group: Group) -> object:
        """Load the one sample of a group, for a loader without batches."""
        seed_process(group.seed(0))
        return self.inner[group.at[0]]

    def __getitems__(self, group: Group) -> list[object]:
        """Load the samples of a group."""
        if hasattr(self.inner, "__getitems__"):
            seed_process(group.seed(0))
            many: list[object] = self.inner.__getitems__(group.at)
            return many
        return [self._seeded(index, group.seed(place)) for place, index in enumerate(group.at)]

    def _seeded(self, index: object, seed: int) -> object:
        seed_process(seed)
        return self.inner[index]

    def __len__(self) -> int:
        return len(cast("Sequence[object]", self.inner))

    # What a worker_init_fn reads or sets through get_worker_info().dataset belongs to the user's.
    def __getattr__(self, name: str) -> object:
        if name == "inner" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.inner, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self.inner, name, value)


def seed_process(seed: int) -> None:
    """Seed Python's, NumPy's and torch's generators of this process, but no GPU's."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.default_generator.manual_seed(seed)


def key_of(states: Iterable[torch.Tensor], count: int) -> int:
    """Condense the state of the generators and the number of the pass into the pass's key."""
    digest = hashlib.blake2b(str(count).encode(), digest_size=8)
    for state in states:
        digest.update(state.numpy().tobytes())
    return int.from_bytes(digest.digest(), "little")
