"""From samples to a batch."""

import random
import warnings
from collections import namedtuple

import numpy as np
import pytest
import torch

from hookloop_mmengine.dataset import default_collate, pseudo_collate, worker_init_fn

Pair = namedtuple("Pair", "image label")


def test_pseudo_collate_transposes_without_stacking():
    samples = [{"inputs": torch.tensor([n]), "meta": {"id": n}, "name": str(n)} for n in range(2)]
    batch = pseudo_collate(samples)
    assert [tensor.tolist() for tensor in batch["inputs"]] == [[0], [1]]
    assert batch["meta"] == {"id": [0, 1]}
    assert batch["name"] == ["0", "1"]


@pytest.mark.parametrize(
    ("samples", "wanted"),
    [
        ([(1, "a"), (2, "b")], [[1, 2], ("a", "b")]),
        ([[1, 2], [3, 4]], [[1, 3], [2, 4]]),
        ([Pair(1, 2), Pair(3, 4)], Pair([1, 3], [2, 4])),
        (["a", "b"], ["a", "b"]),
        ([None, None], [None, None]),
        ([(1, (2, 3)), (4, (5, 6))], [[1, 4], [[2, 5], [3, 6]]]),
    ],
)
def test_pseudo_collate_of_sequences(samples, wanted):
    batch = pseudo_collate(samples)
    assert batch == wanted
    assert type(batch) is type(wanted)


def test_default_collate_stacks_what_can_be_stacked():
    class Sample: ...

    samples = [
        {"inputs": torch.ones(2) * n, "label": n, "score": 0.5, "array": np.ones(2), "name": "x",
         "sample": Sample()}
        for n in range(3)
    ]  # fmt: skip
    batch = default_collate(samples)
    assert batch["inputs"].shape == (3, 2)
    assert batch["label"].tolist() == [0, 1, 2]
    assert batch["score"].dtype == torch.float64
    assert batch["array"].shape == (3, 2)
    assert batch["name"] == ["x"] * 3
    assert [type(entry) for entry in batch["sample"]] == [Sample] * 3


def test_default_collate_transposes_tuples():
    inputs, labels = default_collate([(torch.ones(2), 1), (torch.zeros(2), 2)])
    assert inputs.tolist() == [[1, 1], [0, 0]]
    assert labels.tolist() == [1, 2]


@pytest.mark.parametrize("collate", [pseudo_collate, default_collate])
def test_samples_of_different_lengths_are_rejected(collate):
    with pytest.raises(RuntimeError, match="each element in list of batch should be of equal size"):
        collate([(1, 2), (3,)])


@pytest.mark.parametrize(("worker", "rank", "seed"), [(0, 0, 5), (1, 0, 5), (0, 1, 5), (1, 2, 0)])
def test_each_worker_of_each_process_is_seeded_differently(worker, rank, seed):
    states = random.getstate(), np.random.get_state(), torch.get_rng_state()
    try:
        worker_init_fn(worker, num_workers=2, rank=rank, seed=seed)
        drawn = random.random(), float(np.random.rand()), float(torch.rand(()))
        wanted = 2 * rank + worker + seed
        random.seed(wanted)
        np.random.seed(wanted)
        torch.manual_seed(wanted)
        assert drawn == (random.random(), float(np.random.rand()), float(torch.rand(())))
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
        torch.set_rng_state(states[2])


@pytest.mark.parametrize(("worker", "expected"), [(0, 1), (1, 0)])
def test_warnings_of_all_workers_but_the_first_can_be_silenced(worker, expected):
    state = torch.get_rng_state()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        worker_init_fn(worker, 2, 0, 0, disable_subprocess_warning=True)
        warnings.warn("again", stacklevel=1)
    torch.set_rng_state(state)
    assert len(caught) == expected
