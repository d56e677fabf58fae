"""The random number generators of the process: read, set and filled within microseconds.

``random.getstate`` makes 625 Python integers, and ``numpy.random.get_state`` is slower still: for a
sampler with a random stream of its own, both together cost more than the whole iteration of a small
model. The same words can be copied where they lie in memory. That address is checked against the
public functions for each pass. If it does not hold (another Python, another bit generator), the
public functions are used.
"""

from __future__ import annotations

import ctypes
import operator
import pickle
import random
import struct
import sys
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from typing import Any, NamedTuple, cast

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


class Generator(NamedTuple):
    """One generator, as plain functions: a method between would cost as much as they do.

    Attributes:
        name: Its name in a checkpoint.
        get_state: Returns its state, in a form that only the other functions understand.
        set_state: Sets it to such a state.
        fill: Starts it from random words of 32 bits, which is faster than from a seed.
        seed: Starts it from a seed of 64 bits.
        is_same: Returns whether nothing was drawn between two states.

    >>> generator = python_generator()
    >>> state = generator.get_state()
    >>> number = random.random()
    >>> generator.has_moved(state)
    True
    >>> generator.set_state(state)
    >>> random.random() == number
    True
    """

    name: str
    get_state: Callable[[], Any]
    set_state: Callable[[Any], object]
    fill: Callable[[bytes], object]
    seed: Callable[[int], object]
    is_same: Callable[[Any, Any], bool] = operator.eq

    def has_moved(self, since: object) -> bool:
        """Return whether anything was drawn since it had some state."""
        return not self.is_same(self.get_state(), since)


Three = tuple[Generator, Generator, Generator]


def process_generators() -> Three:
    """Return Python's, NumPy's and torch's generators, as they are now."""
    of_torch = torch_generator("torch", torch.default_generator)
    return python_generator(), numpy_generator(), of_torch


def cached_generators() -> Three:
    """Return the same, found in an earlier call unless NumPy has another bit generator."""
    return _found_once(np.random.mtrand.get_bit_generator())


def device_generators(devices: Iterable[torch.device]) -> list[Generator]:
    """List the generators of some devices, except for that of the CPU."""
    found = []
    for device in dict.fromkeys(devices):
        # torch.cuda and torch.xpu list theirs, one per device.
        listed = getattr(getattr(torch, device.type, None), "default_generators", ())
        index = device.index or 0
        if index < len(listed):
            found.append(torch_generator(f"{device.type}:{index}", listed[index]))
    return found


def fill_all(words: bytes) -> None:
    """Start all three from random bytes: `FILL` each for Python and NumPy, and 8 for torch."""
    python, numpy, torch_cpu = _found_once(np.random.mtrand.get_bit_generator())
    python.fill(words[:FILL])
    numpy.fill(words[FILL : 2 * FILL])
    torch_cpu.fill(words[2 * FILL :])


@lru_cache(maxsize=1)
def _found_once(bits: object) -> Three:
    """Look for the memory again only when NumPy has another bit generator."""
    return process_generators()


def torch_generator(name: str, generator: torch.Generator) -> Generator:
    """Return one of torch's generators, of any device; their own functions are fast."""

    def fill(words: bytes) -> None:
        generator.manual_seed(int.from_bytes(words[:8], "little"))

    own = generator.get_state, generator.set_state, fill, generator.manual_seed
    return Generator(name, *own, is_same=torch.equal)


def python_generator() -> Generator:
    """Return the generator of Python's module ``random``."""
    generator = cast("Any", random.random).__self__
    # CPython's RandomObject is the header of every object, then an int with the position, then
    # the 624 words.
    after_head = object.__basicsize__
    public = Generator("python", random.getstate, random.setstate, _fill_python, random.seed)
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

    return public._replace(get_state=get_state, set_state=set_state, fill=fill)


def numpy_generator() -> Generator:
    """Return that of the functions of ``numpy.random``, with the number that it may hold back."""
    own = np.random.get_state, np.random.set_state, _fill_numpy, _seed_numpy
    public = Generator("numpy", *own, is_same=_is_same_pickled)
    holder = cast("Any", np.random.random_sample).__self__
    bits = np.random.mtrand.get_bit_generator()
    if type(bits) is not np.random.MT19937:
        return public._replace(**_functions_of(bits))
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

    return Generator("numpy", get_state, set_state, fill, _seed_numpy)


def _functions_of(bits: Any) -> dict[str, Any]:  # noqa: ANN401 - a bit generator of any kind
    def set_state(state: object) -> None:
        bits.state = state

    def fill(words: bytes) -> None:
        bits.state = type(bits)(int.from_bytes(words[:16], "little")).state

    return {"get_state": lambda: bits.state, "set_state": set_state, "fill": fill}


def _fill_python(words: bytes) -> None:
    random.setstate((3, (*np.frombuffer(words, np.uint32).tolist(), WORDS - 1), None))


def _fill_numpy(words: bytes) -> None:
    np.random.set_state(("MT19937", np.frombuffer(words, np.uint32), WORDS - 1, 0, 0.0))


def _seed_numpy(seed: int) -> None:
    np.random.seed(seed % 2**32)


def _is_same_pickled(one: object, other: object) -> bool:
    # The public functions return dicts and arrays.
    return pickle.dumps(one) == pickle.dumps(other)


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
