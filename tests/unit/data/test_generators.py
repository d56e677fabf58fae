import random
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from hookloop.data.random import generators
from hookloop.data.random.generators import (
    cached_generators,
    device_generators,
    fill_all,
    process_generators,
)


def draw():
    """Draw from each generator, in counts that do not end where a buffer ends."""
    return (
        [random.random(), random.gauss(0, 1), random.randrange(10**30)],
        [np.random.rand(), *np.random.randn(3), np.random.randint(10)],
        [*torch.rand(3).tolist(), *torch.randn(17).tolist()],
    )


def check_that_all_can_be_restored(found):
    for _ in range(3):
        draw()
        states = [one.get_state() for one in found]
        expected = [draw() for _ in range(400)]
        for one, state in zip(found, states, strict=True):
            one.set_state(state)
        assert [draw() for _ in range(400)] == expected


def test_a_state_can_be_restored():
    check_that_all_can_be_restored(process_generators())


def test_each_is_a_generator_of_its_own():
    for which, one in enumerate(process_generators()):
        state = one.get_state()
        before = draw()
        one.set_state(state)
        after = draw()
        assert [x == y for x, y in zip(before, after, strict=True)] == [
            number == which for number in range(3)
        ]


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="other memory layout")
def test_the_memory_is_found_on_this_python():
    python, numpy, _ = process_generators()
    assert python.get_state is not random.getstate and numpy.get_state is not np.random.get_state


def test_where_memory_is_not_as_expected_the_public_functions_are_used(monkeypatch):
    monkeypatch.setattr(
        generators, "sys", SimpleNamespace(implementation=SimpleNamespace(name="x"))
    )
    generators._offset_of_gauss.cache_clear()
    found = process_generators()
    generators._offset_of_gauss.cache_clear()
    assert found[0].get_state is random.getstate and found[1].get_state is np.random.get_state
    check_that_all_can_be_restored(found)


def test_another_bit_generator_of_numpy_is_left_to_itself():
    before = np.random.get_bit_generator()
    np.random.set_bit_generator(np.random.PCG64(3))
    try:
        _, numpy, _ = process_generators()
        state = numpy.get_state()
        expected = np.random.rand(3).tolist()
        numpy.set_state(state)
        assert np.random.rand(3).tolist() == expected
    finally:
        np.random.set_bit_generator(before)


def test_filling_starts_all_three_from_the_bytes_alone(monkeypatch):
    words = bytes(range(256)) * 20
    found = []
    for _ in range(2):
        draw()
        fill_all(words[: 2 * generators.FILL + 8])
        found.append(draw())
    assert found[0] == found[1]
    fill_all(words[1 : 2 * generators.FILL + 9])
    assert [one == other for one, other in zip(draw(), found[0], strict=True)] == [False] * 3
    # The public functions, where the memory is unknown, fill in the same way.
    public = (generators._fill_python, generators._fill_numpy)
    fill_all(words[: 2 * generators.FILL + 8])
    expected = draw()[:2]
    for fill, start in zip(public, (0, generators.FILL), strict=True):
        fill(words[start : start + generators.FILL])
    assert draw()[:2] == expected


# --- one interface for all ---

DRAWS = {
    "python": [random.random, lambda: random.gauss(0, 1), lambda: random.choice(range(9))],
    "numpy": [np.random.rand, np.random.randn, lambda: np.random.permutation(5).tolist()],
    "torch": [lambda: torch.rand(1).item(), lambda: torch.randn(1).item()],
}
CASES = [(name, n) for name, draws in DRAWS.items() for n in range(len(draws))]


def make(name, public):
    found = {one.name: one for one in process_generators()}[name]
    if public and name == "python":  # As in another implementation of Python.
        return found._replace(get_state=random.getstate, set_state=random.setstate)
    if public and name == "numpy":
        own = {"get_state": np.random.get_state, "set_state": np.random.set_state}
        return found._replace(**own, is_same=generators._is_same_pickled)
    return found


@pytest.mark.parametrize("public", [False, True], ids=["memory", "public functions"])
@pytest.mark.parametrize(("name", "which"), CASES)
def test_a_draw_is_seen_and_can_be_undone(name, which, public):
    generator, draw = make(name, public), DRAWS[name][which]
    for _ in range(5):  # Normal numbers are drawn in pairs: every other one moves no word.
        before = generator.get_state()
        assert not generator.has_moved(before)
        first = [draw() for _ in range(7)]
        generator.set_state(before)
        assert not generator.has_moved(before)
        assert [draw() for _ in range(7)] == first
        before = generator.get_state()
        draw()
        assert generator.has_moved(before)


@pytest.mark.parametrize("name", DRAWS)
def test_a_whole_round_of_words_is_seen(name):
    generator = make(name, public=False)
    before = generator.get_state()
    {
        "python": lambda: random.getrandbits(32 * 624),
        "numpy": lambda: np.random.bytes(4 * 624),
        "torch": lambda: torch.randint(2**31, (624,), dtype=torch.int32),
    }[name]()
    assert generator.has_moved(before)


@pytest.mark.parametrize(("name", "which"), CASES)
def test_a_seed_begins_again(name, which):
    generator, draw = make(name, public=False), DRAWS[name][which]
    generator.seed(2**64 - 7)
    first = [draw() for _ in range(3)]
    generator.seed(2**64 - 7)
    assert [draw() for _ in range(3)] == first


def test_numpys_generator_may_be_replaced_by_one_of_another_kind():
    old = np.random.get_bit_generator()
    try:
        for other in (np.random.MT19937(5), np.random.PCG64(6), np.random.MT19937(7)):
            np.random.set_bit_generator(other)
            generator = cached_generators()[1]
            before = generator.get_state()
            first = np.random.rand(3).tolist()
            generator.set_state(before)
            assert np.random.rand(3).tolist() == first
    finally:
        np.random.set_bit_generator(old)


def test_the_generators_of_devices_are_listed(monkeypatch):
    own = [torch.Generator(), torch.Generator()]
    monkeypatch.setattr(torch.cuda, "default_generators", own)
    (listed,) = device_generators([torch.device("cpu"), torch.device("cuda", 1)])
    assert listed.name == "cuda:1"
    before = listed.get_state()
    torch.rand(1, generator=own[1])
    assert listed.has_moved(before)
