import random
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from hookloop.data import generators
from hookloop.data.generators import access_all


def draw():
    """Draw from each generator, in numbers that do not end where their stores do."""
    return (
        [random.random(), random.gauss(0, 1), random.randrange(10**30)],
        [np.random.rand(), *np.random.randn(3), np.random.randint(10)],
        [*torch.rand(3).tolist(), *torch.randn(17).tolist()],
    )


def check_that_all_can_be_put_back(ways):
    for _ in range(3):
        draw()
        taken = [way.take() for way in ways]
        expected = [draw() for _ in range(400)]
        for way, one in zip(ways, taken, strict=True):
            way.put(one)
        assert [draw() for _ in range(400)] == expected


def test_what_was_taken_can_be_put_back():
    check_that_all_can_be_put_back(access_all())


def test_each_is_a_generator_of_its_own():
    for which, way in enumerate(access_all()):
        taken = way.take()
        before = draw()
        way.put(taken)
        after = draw()
        assert [one == other for one, other in zip(before, after, strict=True)] == [
            number == which for number in range(3)
        ]


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="others have other memory")
def test_the_memory_is_found_on_this_python():
    python, numpy, _ = access_all()
    assert python.take is not random.getstate and numpy.take is not np.random.get_state


def test_where_memory_is_not_as_expected_the_public_functions_are_used(monkeypatch):
    monkeypatch.setattr(
        generators, "sys", SimpleNamespace(implementation=SimpleNamespace(name="x"))
    )
    generators._where_gauss_is.cache_clear()
    ways = access_all()
    generators._where_gauss_is.cache_clear()
    assert ways[0].take is random.getstate and ways[1].take is np.random.get_state
    check_that_all_can_be_put_back(ways)


def test_another_bit_generator_of_numpy_is_left_to_itself():
    before = np.random.get_bit_generator()
    np.random.set_bit_generator(np.random.PCG64(3))
    try:
        _, numpy, _ = access_all()
        taken = numpy.take()
        expected = np.random.rand(3).tolist()
        numpy.put(taken)
        assert np.random.rand(3).tolist() == expected
    finally:
        np.random.set_bit_generator(before)
