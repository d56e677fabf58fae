"""Locations for checkpoints, for tests that hold in each of them."""

import uuid

import pytest
import torch

from hookloop.checkpoint.shards.writing import stage, write
from hookloop.checkpoint.store.storage import open_storage


@pytest.fixture(params=["local", "memory"])
def location(request, tmp_path):
    """A directory that is not there yet, or a URL of fsspec."""
    return str(tmp_path / "store") if request.param == "local" else f"memory://{uuid.uuid4().hex}"


@pytest.fixture
def storage(location):
    return open_storage(location)


@pytest.fixture
def shards(tmp_path):
    """A directory of shards that a process alone has written, and what it holds."""
    state = {
        "model": {"w": torch.randn(40, 3), "low": torch.randn(5).bfloat16(), "n": torch.tensor(3)},
        "optimizers": {
            "main": {
                "state": {"w": {"step": torch.tensor(1.0), "exp_avg": torch.randn(40, 3)}},
                "param_groups": [{"lr": 0.1, "params": ["w"]}],
            }
        },
        "progress": {"iter": 3},
        "rng": [[torch.arange(3)], "text"],
    }
    write(stage(state), tmp_path / "iter_3")
    return tmp_path / "iter_3", state
