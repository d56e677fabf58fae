"""The random number generators that are kept for the training, each behind one small interface."""

from __future__ import annotations

import ctypes
import pickle
import random
from collections.abc import Hashable, Iterable
from typing import Protocol, cast

import numpy as np
import torch

from hookloop.data.generators import access_numpy, access_python


class Generator(Protocol):
    """One generator.

    Attributes:
        name: What a checkpoint calls it.
    """

    name: str

    def now(self) -> Hashable:
        """Return the state; two are equal if nothing was drawn in between."""

    def restore(self, state: Hashable) -> None:
        """Continue from what `now` returned."""

    def seed(self, seed: int) -> None:
        """Begin again from a seed of 64 bits."""


class PythonGenerator:
    """The one behind Python's module ``random``.

    >>> generator = PythonGenerator()
    >>> state = generator.now()
    >>> number = random.random()
    >>> generator.now() == state
    False
    >>> generator.restore(state)
    >>> random.random() == number
    True
    """

    name = "python"

    def __init__(self) -> None:
        self._access = access_python()

    def now(self) -> Hashable:
        """Return the state."""
        return cast("Hashable", self._access.take())

    def restore(self, state: Hashable) -> None:
        """Continue from a state."""
        self._access.put(state)

    def seed(self, seed: int) -> None:
        """Begin again from a seed."""
        random.seed(seed)


class NumpyGenerator:
    """The one behind the functions of NumPy's module ``numpy.random``."""

    name = "numpy"

    def __init__(self) -> None:
        self._find()

    def now(self) -> Hashable:
        """Return the state."""
        if np.random.mtrand.get_bit_generator() is not self._bits:  # Somebody has set another.
            self._find()
        taken = self._access.take()
        return cast("Hashable", taken) if self._is_fast else pickle.dumps(taken)

    def restore(self, state: Hashable) -> None:
        """Continue from a state."""
        self._access.put(state if self._is_fast else pickle.loads(cast("bytes", state)))

    def seed(self, seed: int) -> None:
        """Begin again from a seed."""
        np.random.seed(seed % 2**32)

    def _find(self) -> None:
        self._bits = np.random.mtrand.get_bit_generator()
        self._access = access_numpy()
        taken = self._access.take()  # In memory; or what the public functions return.
        self._is_fast = isinstance(taken, tuple) and isinstance(taken[0], bytes)


class TorchGenerator:
    """One of torch's, of any device."""

    def __init__(self, name: str, generator: torch.Generator) -> None:
        self.name = name
        self._generator = generator

    def now(self) -> Hashable:
        """Return the state."""
        state = self._generator.get_state()
        return ctypes.string_at(state.data_ptr(), state.numel())

    def restore(self, state: Hashable) -> None:
        """Continue from a state."""
        words = torch.frombuffer(bytearray(cast("bytes", state)), dtype=torch.uint8)
        self._generator.set_state(words)

    def seed(self, seed: int) -> None:
        """Begin again from a seed."""
        self._generator.manual_seed(seed)


def process_generators(devices: Iterable[torch.device] = ()) -> list[Generator]:
    """List the generators that everybody in the process draws from, with those of some devices."""
    found: list[Generator] = [
        PythonGenerator(),
        NumpyGenerator(),
        TorchGenerator("torch", torch.default_generator),
    ]
    for device in dict.fromkeys(devices):
        # CUDA's and XPU's modules list theirs, one per device; the processor's stands above.
        listed = getattr(getattr(torch, device.type, None), "default_generators", ())
        index = device.index or 0
        if index < len(listed):
            found.append(TorchGenerator(f"{device.type}:{index}", listed[index]))
    return found
