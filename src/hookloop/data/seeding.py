"""The random numbers of a sample that a worker loads.

Workers begin their generators anew in every process, so a resumed run could never repeat them. Here
each sample's randomness follows from the pass over the data and the sample's place in it: it is the
same for any number of workers, and after a resume.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch.utils.data import Dataset

from hookloop.data.generators import FILL, fill_all


class Group(NamedTuple):
    """Indices of samples that are loaded together, with what their randomness follows from."""

    at: list[object]
    key: int
    batch: int

    def words(self) -> list[bytes]:
        """Return random bytes for each sample, with which the generators can be filled."""
        # Made for all at once: a seed for each generator and sample takes three times as long.
        bits, begin = _bits(), hashlib.blake2b(f"{self.key}/{self.batch}".encode(), digest_size=24)
        state = np.frombuffer(begin.digest() + b"\1" + bytes(7), np.uint64)
        bits.state = {
            "bit_generator": "SFC64",
            "state": {"state": state},
            "has_uint32": 0,
            "uinteger": 0,
        }
        made = bits.random_raw(MIXING + WORDS_OF_ONE * len(self.at))
        data, each = made[MIXING:].tobytes(), 8 * WORDS_OF_ONE
        return [data[at : at + each] for at in range(0, len(data), each)]


MIXING = 16
"""Numbers that are dropped until each depends on the whole state."""

WORDS_OF_ONE = (2 * FILL + 8) // 8
"""Of 64 bits: for Python's and NumPy's generator, and a seed of torch's."""


@cache
def _bits() -> np.random.SFC64:
    """Return what is given another state for each group: to build one takes as long as all else."""
    return np.random.SFC64(0)


Sent = tuple[list[object], int, int]
"""A group on its way to a worker: plain, which takes a fifth of the time to pickle."""


class SeededSamples(Dataset[object]):
    """A data set that begins Python's, NumPy's and torch's generators again for each sample.

    It is asked for groups, which take a fraction of the time that their samples one by one would
    take on their way to a worker.
    """

    def __init__(self, inner: Dataset[object]) -> None:
        self.inner: Any
        self.__dict__["inner"] = inner

    def __getitem__(self, sent: Sent) -> object:
        """Load the one sample of a group, for a loader without batches."""
        group = Group(*sent)
        return self._load(group.at[0], group.words()[0])

    def __getitems__(self, sent: Sent) -> list[object]:
        """Load the samples of a group."""
        group = Group(*sent)
        words = group.words()
        if hasattr(self.inner, "__getitems__"):
            fill_all(words[0])
            many: list[object] = self.inner.__getitems__(group.at)
            return many
        return list(map(self._load, group.at, words))

    def _load(self, index: object, words: bytes) -> object:
        fill_all(words)
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
