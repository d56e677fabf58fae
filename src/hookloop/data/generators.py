"""Python's, NumPy's and torch's global generators, taken, put back and filled within microseconds.

``random.getstate`` makes 625 numbers of Python, and ``numpy.random.get_state`` is slower still: for
a sampler that is to draw undisturbed, both together cost more than the whole iteration of a small
model. The same words can be copied where they lie in memory. Where that is, is checked against the
public functions for each pass; if it does not hold (another Python, another bit generator), the
public functions are used.
"""

from __future__ import annotations

import ctypes
import random
import struct
import sys
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, NamedTuple, cast

import numpy as np
import torch

WORDS = 625
"""Of a Mersenne Twister: 624 of state, and the place in them."""


PLACE = struct.pack("i", WORDS - 1)
"""The place behind all words: the next draw makes new ones of them."""


class Access(NamedTuple):
    """How one generator is read and set.

    Attributes:
        take: Returns its state, for `put` alone.
        put: Sets it to what was taken.
        fill: Begins with 624 random words of 32 bits, which is faster than to make them of a seed.
    """

    take: Callable[[], Any]
    put: Callable[[Any], object]
    fill: Callable[[bytes], object]


def access_all() -> tuple[Access, Access, Access]:
    """Return the ways to Python's, NumPy's and torch's generators, as they are now."""
    return access_python(), access_numpy(), access_torch()


def fill_all(words: bytes) -> None:
    """Begin all three with random bytes, twice 2496 and 8 of them."""
    python, numpy, torchs = _access_once(np.random.mtrand.get_bit_generator())
    python.fill(words[:FILL])
    numpy.fill(words[FILL : 2 * FILL])
    torchs.fill(words[2 * FILL :])


FILL = 4 * (WORDS - 1)


@lru_cache(maxsize=1)
def _access_once(bits: object) -> tuple[Access, Access, Access]:
    """Look for the memory only when NumPy has been given another bit generator."""
    return access_all()


def access_torch() -> Access:
    """Return the way to torch's generator of the CPU, whose own functions are fast."""
    one = torch.default_generator

    def fill(words: bytes) -> None:
        one.manual_seed(int.from_bytes(words[:8], "little"))

    return Access(one.get_state, one.set_state, fill)


def access_python() -> Access:
    """Return the way to Python's generator."""
    generator = cast("Any", random.random).__self__
    after_head = object.__basicsize__
    slow = Access(random.getstate, random.setstate, _fill_python)
    if not _is_at_hand(generator, after_head + 4 * WORDS):
        return slow
    words = (ctypes.c_uint32 * WORDS).from_address(id(generator) + after_head)
    *state, place = random.getstate()[1]
    if list(words) != [place, *state]:
        return slow
    memory = memoryview(words).cast("B")

    def take() -> tuple[bytes, float | None]:
        return bytes(memory), generator.gauss_next

    def put(taken: tuple[bytes, float | None]) -> None:
        memory[:], generator.gauss_next = taken

    def fill(words: bytes) -> None:
        memory[:], generator.gauss_next = PLACE + words, None

    return Access(take, put, fill)


def access_numpy() -> Access:
    """Return the way to NumPy's generator, with the normal number that it may hold back."""
    slow = Access(np.random.get_state, np.random.set_state, _fill_numpy)
    holder = cast("Any", np.random.random_sample).__self__
    bits = np.random.mtrand.get_bit_generator()
    if type(bits) is not np.random.MT19937:
        return _access_bits(bits)
    gauss = _where_gauss_is()
    if gauss is None or not _is_at_hand(holder, gauss + GAUSS):
        return slow
    words = (ctypes.c_uint32 * WORDS).from_address(bits.ctypes.state_address)
    state: Any = np.random.get_state()
    if list(words) != [*state[1].tolist(), state[2]]:
        return slow
    memory = memoryview(words).cast("B")
    held = memoryview((ctypes.c_byte * GAUSS).from_address(id(holder) + gauss)).cast("B")

    def take() -> tuple[bytes, bytes]:
        return bytes(memory), bytes(held)

    def put(taken: tuple[bytes, bytes]) -> None:
        memory[:], held[:] = taken

    def fill(words: bytes) -> None:
        memory[:], held[:] = words + PLACE, bytes(GAUSS)

    return Access(take, put, fill)


def _access_bits(bits: Any) -> Access:  # noqa: ANN401 - a bit generator of any kind
    def put(state: object) -> None:
        bits.state = state

    def fill(words: bytes) -> None:
        bits.state = type(bits)(int.from_bytes(words[:16], "little")).state

    return Access(lambda: bits.state, put, fill)


def _fill_python(words: bytes) -> None:
    random.setstate((3, (*np.frombuffer(words, np.uint32).tolist(), WORDS - 1), None))


def _fill_numpy(words: bytes) -> None:
    np.random.set_state(("MT19937", np.frombuffer(words, np.uint32), WORDS - 1, 0, 0.0))


GAUSS = 16
"""Bytes of a flag and of the number that NumPy's generator holds back, if it does."""


@cache
def _where_gauss_is() -> int | None:
    """Find where a generator of NumPy's holds back a normal number, by giving one to another."""
    probe = np.random.RandomState(0)
    size = type(probe).__basicsize__
    if not _is_at_hand(probe, size):
        return None
    kind, state, place, _, _ = cast("tuple[Any, ...]", probe.get_state())
    number, found = 0.6180339887498949, []
    for flag in (1, 0):
        probe.set_state((kind, state, place, flag, number))
        pattern = struct.pack("qd", flag, number)
        found.append(ctypes.string_at(id(probe), size).find(pattern))
    return found[0] if found[0] == found[1] > 0 else None


def _is_at_hand(thing: object, nbytes: int) -> bool:
    """Return whether that much of an object can be read at the address that `id` gives."""
    return sys.implementation.name == "cpython" and type(thing).__basicsize__ >= nbytes
