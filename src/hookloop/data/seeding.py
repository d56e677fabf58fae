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


class Sample(NamedTuple):
    """An index into the data set, with what the sample's randomness follows from."""

    at: object
    key: int
    batch: int
    place: int

    @property
    def seed(self) -> int:
        """A seed of 64 bits."""
        text = f"{self.key}/{self.batch}/{self.place}".encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


class SeededSamples(Dataset[object]):
    """A data set that seeds Python's, NumPy's and torch's generators before it loads a sample."""

    def __init__(self, inner: Dataset[object]) -> None:
        self.inner: Any
        self.__dict__["inner"] = inner
        if hasattr(inner, "__getitems__"):
            self.__dict__["__getitems__"] = self._get_many

    def __getitem__(self, sample: Sample) -> object:
        seed_process(sample.seed)
        return self.inner[sample.at]

    def _get_many(self, samples: Iterable[Sample]) -> list[object]:
        listed = list(samples)
        seed_process(listed[0].seed)
        many: list[object] = self.inner.__getitems__([sample.at for sample in listed])
        return many

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
