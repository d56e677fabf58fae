import random

import numpy as np
import pytest
import torch

from hookloop.data import kept_generators
from hookloop.data.generators import Access
from hookloop.data.kept_generators import (
    NumpyGenerator,
    PythonGenerator,
    TorchGenerator,
    process_generators,
)

DRAWS = {
    "python": [random.random, lambda: random.gauss(0, 1), lambda: random.choice(range(9))],
    "numpy": [np.random.rand, np.random.randn, lambda: np.random.permutation(5).tolist()],
    "torch": [lambda: torch.rand(1).item(), lambda: torch.randn(1).item()],
}
CASES = [(name, n) for name, draws in DRAWS.items() for n in range(len(draws))]


def make(name, monkeypatch, public):
    if public:  # As in another implementation of Python.
        public_numpy = Access(np.random.get_state, np.random.set_state, np.random.seed)
        monkeypatch.setattr(kept_generators, "access_numpy", lambda: public_numpy)
        public_python = Access(random.getstate, random.setstate, random.seed)
        monkeypatch.setattr(kept_generators, "access_python", lambda: public_python)
    kinds = {"python": PythonGenerator, "numpy": NumpyGenerator}
    return kinds[name]() if name in kinds else TorchGenerator("torch", torch.default_generator)


@pytest.mark.parametrize("public", [False, True], ids=["memory", "public functions"])
@pytest.mark.parametrize(("name", "which"), CASES)
def test_a_draw_is_seen_and_can_be_taken_back(name, which, public, monkeypatch):
    generator, draw = make(name, monkeypatch, public), DRAWS[name][which]
    for _ in range(5):  # Normal numbers are drawn in pairs: every other one moves no word.
        before = generator.now()
        assert generator.now() == before
        first = [draw() for _ in range(7)]
        generator.restore(before)
        assert generator.now() == before
        assert [draw() for _ in range(7)] == first
        before = generator.now()
        draw()
        assert generator.now() != before


@pytest.mark.parametrize("name", DRAWS)
def test_a_whole_round_of_words_is_seen(name, monkeypatch):
    generator = make(name, monkeypatch, public=False)
    before = generator.now()
    {
        "python": lambda: random.getrandbits(32 * 624),
        "numpy": lambda: np.random.bytes(4 * 624),
        "torch": lambda: torch.randint(2**31, (624,), dtype=torch.int32),
    }[name]()
    assert generator.now() != before


@pytest.mark.parametrize(("name", "which"), CASES)
def test_a_seed_begins_again(name, which, monkeypatch):
    generator, draw = make(name, monkeypatch, public=False), DRAWS[name][which]
    generator.seed(2**64 - 7)
    first = [draw() for _ in range(3)]
    generator.seed(2**64 - 7)
    assert [draw() for _ in range(3)] == first


def test_numpys_generator_may_be_replaced_by_one_of_another_kind():
    generator, old = NumpyGenerator(), np.random.get_bit_generator()
    try:
        for other in (np.random.MT19937(5), np.random.PCG64(6), np.random.MT19937(7)):
            np.random.set_bit_generator(other)
            before = generator.now()
            first = np.random.rand(3).tolist()
            generator.restore(before)
            assert np.random.rand(3).tolist() == first
    finally:
        np.random.set_bit_generator(old)


def test_devices_bring_theirs(monkeypatch):
    own = [torch.Generator(), torch.Generator()]
    monkeypatch.setattr(torch.cuda, "default_generators", own)
    listed = process_generators([torch.device("cpu"), torch.device("cuda", 1)])
    assert [one.name for one in listed] == ["python", "numpy", "torch", "cuda:1"]
    before = listed[-1].now()
    torch.rand(1, generator=own[1])
    assert listed[-1].now() != before
