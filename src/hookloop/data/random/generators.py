"""The random number generators of the process: read, set and filled within microseconds.

There are two views of them. `GeneratorAccess` is the fastest way to read and set one, and knows
nothing else. `Generator` is the interface for code that also compares and seeds them, and covers
the generators of devices as well.

``random.getstate`` makes 625 Python integers, and ``numpy.random.get_state`` is slower still: for a
sampler with a random stream of its own, both together cost more than the whole iteration of a small
model. The same words can be copied where they lie in memory. That address is checked against the
public functions for each pass. If it does not hold (another Python, another bit generator), the
public functions are used.
"""

from __future__ import annotations

import ctypes
import pickle
import random
import struct
import sys
from collections.abc import Callable, Hashable, Iterable
from functools import cache, lru_cache
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
import torch

WORDS = 625
"""Words of a Mersenne Twister: 624 of state, and the position in them."""

END_POSITION = struct.pack("i", WORDS - 1)
"""The position behind all words: the next draw makes new ones from them."""

FILL = 4 * (WORDS - 1)
"""Bytes that fill the state of a Mersenne Twister."""

GAUSS = 16
"""Bytes of a flag and of the normal number that NumPy's generator may hold back."""


# --- direct access -----------------------------------------------------------------------------


class GeneratorAccess(NamedTuple):
    """Functions that read and set one generator.

    Attributes:
        get_state: Returns its state, in a form that only `set_state` understands.
        set_state: Sets it to such a state.
        fill: Starts it from random words of 32 bits, which is faster than from a seed.
    """

    get_state: Callable[[], Any]
    set_state: Callable[[Any], object]
    fill: Callable[[bytes], object]


def access_all() -> tuple[GeneratorAccess, GeneratorAccess, GeneratorAccess]:
    """Return the access to Python's, NumPy's and torch's generators, as they are now."""
    return access_python(), access_numpy(), access_torch()


def access_cached() -> tuple[GeneratorAccess, GeneratorAccess, GeneratorAccess]:
    """Return the same, found in an earlier call unless NumPy has another bit generator."""
    return _access_once(np.random.mtrand.get_bit_generator())


def fill_all(words: bytes) -> None:
    """Start all three from random bytes: `FILL` each for Python and NumPy, and 8 for torch."""
    python, numpy, torch_cpu = _access_once(np.random.mtrand.get_bit_generator())
    python.fill(words[:FILL])
    numpy.fill(words[FILL : 2 * FILL])
    torch_cpu.fill(words[2 * FILL :])


@lru_cache(maxsize=1)
def _access_once(bits: object) -> tuple[GeneratorAccess, GeneratorAccess, GeneratorAccess]:
    """Look for the memory again only when NumPy has another bit generator."""
    return access_all()


def access_torch() -> GeneratorAccess:
    """Return the access to torch's generator of the CPU, whose own functions are fast."""
    generator = torch.default_generator

    def fill(words: bytes) -> None:
        generator.manual_seed(int.from_bytes(words[:8], "little"))

    return GeneratorAccess(generator.get_state, generator.set_state, fill)


def access_python() -> GeneratorAccess:
    """Return the access to Python's generator."""
    generator = cast("Any", random.random).__self__
    # CPython's RandomObject is the header of every object, then an int with the position, then
    # the 624 words.
    after_head = object.__basicsize__
    public = GeneratorAccess(random.getstate, random.setstate, _fill_python)
    if not _is_readable(generator, after_head + 4 * WORDS):
        return public
    words = (ctypes.c_uint32 * WORDS).from_address(id(generator) + after_head)
    *state, position = random.getstate()[1]
    if list(words) != [position, *state]:
        return public
    memory = memoryview(words).cast("B")

    # The normal number that is held back is an attribute and not part of the memory.
    def get_state() -> tuple[bytes, float | None]:
        return bytes(memory), generator.gauss_next

    def set_state(state: tuple[bytes, float | None]) -> None:
        memory[:], generator.gauss_next = state

    def fill(words: bytes) -> None:
        memory[:], generator.gauss_next = END_POSITION + words, None

    return GeneratorAccess(get_state, set_state, fill)


def access_numpy() -> GeneratorAccess:
    """Return the access to NumPy's generator, with the normal number that it may hold back."""
    public = GeneratorAccess(np.random.get_state, np.random.set_state, _fill_numpy)
    holder = cast("Any", np.random.random_sample).__self__
    bits = np.random.mtrand.get_bit_generator()
    if type(bits) is not np.random.MT19937:
        return _access_bits(bits)
    gauss = _offset_of_gauss()
    if gauss is None or not _is_readable(holder, gauss + GAUSS):
        return public
    # NumPy keeps the words first and the position last, the other way round than Python.
    words = (ctypes.c_uint32 * WORDS).from_address(bits.ctypes.state_address)
    state: Any = np.random.get_state()
    if list(words) != [*state[1].tolist(), state[2]]:
        return public
    memory = memoryview(words).cast("B")
    held = memoryview((ctypes.c_byte * GAUSS).from_address(id(holder) + gauss)).cast("B")

    def get_state() -> tuple[bytes, bytes]:
        return bytes(memory), bytes(held)

    def set_state(state: tuple[bytes, bytes]) -> None:
        memory[:], held[:] = state

    def fill(words: bytes) -> None:
        memory[:], held[:] = words + END_POSITION, bytes(GAUSS)

    return GeneratorAccess(get_state, set_state, fill)


def _access_bits(bits: Any) -> GeneratorAccess:  # noqa: ANN401 - a bit generator of any kind
    def set_state(state: object) -> None:
        bits.state = state

    def fill(words: bytes) -> None:
        bits.state = type(bits)(int.from_bytes(words[:16], "little")).state

    return GeneratorAccess(lambda: bits.state, set_state, fill)


def _fill_python(words: bytes) -> None:
    random.setstate((3, (*np.frombuffer(words, np.uint32).tolist(), WORDS - 1), None))


def _fill_numpy(words: bytes) -> None:
    np.random.set_state(("MT19937", np.frombuffer(words, np.uint32), WORDS - 1, 0, 0.0))


@cache
def _offset_of_gauss() -> int | None:
    """Find where NumPy's generator holds back a normal number, with a generator made for this."""
    probe = np.random.RandomState(0)
    size = type(probe).__basicsize__
    if not _is_readable(probe, size):
        return None
    kind, state, position, _, _ = cast("tuple[Any, ...]", probe.get_state())
    number, found = 0.6180339887498949, []
    # With both values of the flag: a match that is there only once is a coincidence.
    for flag in (1, 0):
        probe.set_state((kind, state, position, flag, number))
        pattern = struct.pack("qd", flag, number)
        found.append(ctypes.string_at(id(probe), size).find(pattern))
    return found[0] if found[0] == found[1] > 0 else None


def _is_readable(value: object, nbytes: int) -> bool:
    """Return whether that much of an object can be read at the address that `id` returns."""
    return sys.implementation.name == "cpython" and type(value).__basicsize__ >= nbytes


# --- one interface for all ---------------------------------------------------------------------


class Generator(Protocol):
    """One generator.

    Attributes:
        name: Its name in a checkpoint.
    """

    name: str

    def now(self) -> Hashable:
        """Return the state; two are equal if nothing was drawn in between."""

    def restore(self, state: Hashable) -> None:
        """Continue from what `now` returned."""

    def seed(self, seed: int) -> None:
        """Start again from a seed of 64 bits."""


class PythonGenerator:
    """The generator of Python's module ``random``.

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
        return cast("Hashable", self._access.get_state())

    def restore(self, state: Hashable) -> None:
        """Continue from a state."""
        self._access.set_state(state)

    def seed(self, seed: int) -> None:
        """Start again from a seed."""
        random.seed(seed)


class NumpyGenerator:
    """The generator of the functions of ``numpy.random``."""

    name = "numpy"

    def __init__(self) -> None:
        self._find_access()

    def now(self) -> Hashable:
        """Return the state."""
        # numpy.random.set_bit_generator may have replaced it.
        if np.random.mtrand.get_bit_generator() is not self._bits:
            self._find_access()
        state = self._access.get_state()
        return cast("Hashable", state) if self._is_hashable else pickle.dumps(state)

    def restore(self, state: Hashable) -> None:
        """Continue from a state."""
        self._access.set_state(state if self._is_hashable else pickle.loads(cast("bytes", state)))

    def seed(self, seed: int) -> None:
        """Start again from a seed."""
        np.random.seed(seed % 2**32)

    def _find_access(self) -> None:
        self._bits = np.random.mtrand.get_bit_generator()
        self._access = access_numpy()
        # Bytes from the memory can be compared. The public functions return dicts and arrays,
        # which are pickled for that.
        state = self._access.get_state()
        self._is_hashable = isinstance(state, tuple) and isinstance(state[0], bytes)


class TorchGenerator:
    """One of torch's generators, of any device."""

    def __init__(self, name: str, generator: torch.Generator) -> None:
        self.name = name
        self._generator = generator

    def now(self) -> Hashable:
        """Return the state."""
        state = self._generator.get_state()
        return ctypes.string_at(state.data_ptr(), state.numel())

    def restore(self, state: Hashable) -> None:
        """Continue from a state."""
        # From a copy, because torch warns about a tensor over bytes that cannot be written to.
        words = torch.frombuffer(bytearray(cast("bytes", state)), dtype=torch.uint8)
        self._generator.set_state(words)

    def seed(self, seed: int) -> None:
        """Start again from a seed."""
        self._generator.manual_seed(seed)


def process_generators(devices: Iterable[torch.device] = ()) -> list[Generator]:
    """List the generators that all code of the process shares, with those of some devices."""
    found: list[Generator] = [
        PythonGenerator(),
        NumpyGenerator(),
        TorchGenerator("torch", torch.default_generator),
    ]
    for device in dict.fromkeys(devices):
        # torch.cuda and torch.xpu list theirs, one per device. That of the CPU is already there.
        listed = getattr(getattr(torch, device.type, None), "default_generators", ())
        index = device.index or 0
        if index < len(listed):
            found.append(TorchGenerator(f"{device.type}:{index}", listed[index]))
    return found
