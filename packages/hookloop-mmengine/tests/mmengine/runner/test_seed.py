"""One seed for all generators."""

import random

import numpy as np
import pytest
import torch

from hookloop_mmengine.runner import set_random_seed


@pytest.fixture(autouse=True)
def generators():
    states = random.getstate(), np.random.get_state(), torch.get_rng_state()
    flags = torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark
    yield
    random.setstate(states[0])
    np.random.set_state(states[1])
    torch.set_rng_state(states[2])
    torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = flags


def draw():
    return random.random(), float(np.random.rand()), float(torch.rand(()))


def test_a_seed_repeats_all_generators():
    assert set_random_seed(5) == 5
    first = draw()
    set_random_seed(5)
    assert draw() == first
    set_random_seed(6)
    assert draw() != first


def test_without_a_seed_one_is_drawn_that_repeats():
    seed = set_random_seed()
    first = draw()
    assert 0 <= seed < 2**31
    set_random_seed(seed)
    assert draw() == first


def test_a_drawn_seed_does_not_depend_on_the_generators():
    set_random_seed(1)
    one = set_random_seed()
    set_random_seed(1)
    assert set_random_seed() != one


def test_determinism_is_set_only_when_asked_for():
    torch.backends.cudnn.deterministic = False
    torch.backends.cudnn.benchmark = True
    set_random_seed(1)
    assert not torch.backends.cudnn.deterministic
    set_random_seed(1, deterministic=True)
    assert torch.backends.cudnn.deterministic
    assert not torch.backends.cudnn.benchmark
