import random

import numpy as np
import torch

from hookloop.data.random.states import GeneratorStates, seed_all


def draw(*generators):
    own = [torch.rand(1, generator=one).item() for one in generators]
    return [random.gauss(0, 1), np.random.randn(), torch.randn(1).item(), *own]


def test_every_generator_continues_from_the_moment(tmp_path):
    generator = torch.Generator().manual_seed(4)
    draw(generator)  # An odd number of Gaussian ones, of which the generators hold back a second.
    now = GeneratorStates.now([generator])
    torch.save(now.state, tmp_path / "state.pth")
    first = draw(generator)
    again = GeneratorStates(torch.load(tmp_path / "state.pth", weights_only=True))
    again.restore([generator])
    assert draw(generator) == first


def test_a_moment_is_not_changed_by_what_is_drawn_later():
    now = GeneratorStates.now()
    key = now.key(1)
    draw()
    assert now.key(1) == key != GeneratorStates.now().key(1)


def test_a_seed_starts_all_of_them():
    seed_all(2**40 + 5)
    first = draw()
    seed_all(2**40 + 5)
    assert draw() == first


def test_the_generator_of_mps_is_saved_too(tmp_path, monkeypatch):
    # One of the CPU stands for it, since the tests run where there is none.
    mps = torch.Generator().manual_seed(7)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(torch.mps, "get_rng_state", mps.get_state)
    monkeypatch.setattr(torch.mps, "set_rng_state", mps.set_state)
    now = GeneratorStates.now()
    torch.save(now.state, tmp_path / "state.pth")
    first = draw(mps)
    GeneratorStates(torch.load(tmp_path / "state.pth", weights_only=True)).restore()
    assert draw(mps) == first
    # A checkpoint of a Mac is continued elsewhere without it.
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    now.restore()
    assert "mps" not in GeneratorStates.now().state
