"""The random numbers of a sample that a worker loads.

torch seeds the generators of each worker once, so a resumed run could never repeat them. Here
the randomness of each sample depends only on the pass over the data and on the sample's position in
it: it is the same for any number of workers, and after a resume.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch.utils.data import Dataset

from hookloop.data.random.generators import FILL, cached_generators, fill_all


class SampleGroup(NamedTuple):
    """Indices of samples that are loaded together, with the source of their randomness.

    Attributes:
        indices: The indices.
        key: The key of the pass.
        batch: The number of the batch in the pass.
        offset: How many samples of the batch come before them: those that other ranks load.
    """

    indices: list[object]
    key: int
    batch: int
    offset: int = 0

    def random_words(self) -> list[bytes]:
        """Return random bytes for each sample, with which the generators can be filled."""
        # Made for all samples at once: seeding each generator for each sample takes three times
        # as long.
        bits, start = _bits(), hashlib.blake2b(f"{self.key}/{self.batch}".encode(), digest_size=24)
        # SFC64 has three words of state, and a counter that starts at 1.
        state = np.frombuffer(start.digest() + b"\1" + bytes(7), np.uint64)
        bits.state = {
            "bit_generator": "SFC64",
            "state": {"state": state},
            "has_uint32": 0,
            "uinteger": 0,
        }
        bits.random_raw(MIXING + WORDS_PER_SAMPLE * self.offset, output=False)
        numbers = bits.random_raw(WORDS_PER_SAMPLE * len(self.indices))
        data, size = numbers.tobytes(), 8 * WORDS_PER_SAMPLE
        return [data[start : start + size] for start in range(0, len(data), size)]


MIXING = 16
"""Numbers that are dropped until each depends on the whole state."""

WORDS_PER_SAMPLE = (2 * FILL + 8) // 8
"""Words of 64 bits: for Python's and NumPy's generator, and a seed of torch's."""


@cache
def _bits() -> np.random.SFC64:
    """Return a bit generator that gets another state for each group."""
    # Building one takes as long as all the rest of a group.
    return np.random.SFC64(0)


GroupTuple = tuple[list[object], int, int] | tuple[list[object], int, int, int]
"""A group on its way to a worker: a plain tuple takes a fifth of the time to pickle."""


class SeededSamples(Dataset[object]):
    """A data set that starts Python's, NumPy's and torch's generators again for each sample.

    Its indices are whole groups: sending a group to a worker takes a fraction of the time that
    sending its samples one by one would take.
    """

    def __init__(self, inner: Dataset[object]) -> None:
        self.inner: Any
        self.__dict__["inner"] = inner  # Past __setattr__, which sets attributes of `inner`.

    def __getitem__(self, sent: GroupTuple) -> object:
        """Load the only sample of a group, for a loader without batches."""
        group = SampleGroup(*sent)
        return self._load(group.indices[0], group.random_words()[0])

    def __getitems__(self, sent: GroupTuple) -> list[object]:
        """Load the samples of a group."""
        group = SampleGroup(*sent)
        words = group.random_words()
        # A data set that loads a batch at once cannot be seeded between its samples.
        if hasattr(self.inner, "__getitems__"):
            fill_all(words[0])
            samples: list[object] = self.inner.__getitems__(group.indices)
            return samples
        return list(map(self._load, group.indices, words))

    def _load(self, index: object, words: bytes) -> object:
        fill_all(words)
        return self.inner[index]

    def __len__(self) -> int:
        return len(cast("Sequence[object]", self.inner))

    # A worker_init_fn that uses get_worker_info().dataset means the user's own data set.
    def __getattr__(self, name: str) -> object:
        if name == "inner" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.inner, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self.inner, name, value)


class SeededInProcess(SeededSamples):
    """Does the same in the training process, and sets its generators back afterwards."""

    def __getitem__(self, sent: GroupTuple) -> object:
        """Load the only sample of a group, for a loader without batches."""
        with _unchanged():
            return super().__getitem__(sent)

    def __getitems__(self, sent: GroupTuple) -> list[object]:
        """Load the samples of a group."""
        with _unchanged():
            return super().__getitems__(sent)


class SeededWithCollate(SeededInProcess):
    """Lets also ``collate_fn`` draw what it would draw in a worker: behind the last sample.

    Args:
        inner: The data set.
        collate: What makes a batch of samples.
    """

    def __init__(self, inner: Dataset[object], collate: Callable[[Any], object]) -> None:
        super().__init__(inner)
        self._make_batch: Callable[[Any], object]
        self._states: list[Any]
        self.__dict__.update(_make_batch=collate, _states=[])  # As in the base.

    def __getitems__(self, sent: GroupTuple) -> list[object]:
        """Load the samples of a group, and remember where the generators are then."""
        with _unchanged():
            samples = SeededSamples.__getitems__(self, sent)
            self._states[:] = [one.get_state() for one in cached_generators()]
        return samples

    def collate(self, samples: list[object]) -> object:
        """Make a batch of the samples that were loaded last."""
        with _unchanged():
            for generator, state in zip(cached_generators(), self._states, strict=True):
                generator.set_state(state)
            return self._make_batch(samples)


@contextmanager
def _unchanged() -> Iterator[None]:
    """Set the generators of the process back to where they are now."""
    generators = cached_generators()
    before = [one.get_state() for one in generators]
    try:
        yield
    finally:
        for generator, state in zip(generators, before, strict=True):
            generator.set_state(state)


@contextmanager
def unchanged_generators(device: torch.device) -> Iterator[None]:
    """Set the generators of the process, and that of a device, back to where they are now."""
    module = None if device.type == "cpu" else getattr(torch, device.type)
    before = None if module is None else module.get_rng_state()
    with _unchanged():
        try:
            yield
        finally:
            if module is not None:
                module.set_rng_state(before)


def fill_generators(words: bytes, device: torch.device) -> None:
    """Let the generators of the process, and that of a device, begin again from random bytes."""
    fill_all(words)
    if device.type != "cpu":
        getattr(torch, device.type).manual_seed(int.from_bytes(words[:7], "little"))


def seed_process(seed: int) -> None:
    """Seed Python's, NumPy's and torch's generators of this process, but not those of GPUs."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    # torch.manual_seed would also seed the GPUs.
    torch.default_generator.manual_seed(seed)


def derive_key(states: Iterable[torch.Tensor], count: int) -> int:
    """Condense the state of the generators and the number of a pass into the key of the pass."""
    digest = hashlib.blake2b(str(count).encode(), digest_size=8)
    for state in states:
        digest.update(state.numpy().tobytes())
    return int.from_bytes(digest.digest(), "little")
