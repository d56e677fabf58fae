"""Places for checkpoints, for tests that should hold in each of them."""

import uuid

import pytest

from hookloop.checkpoint.storage import open_storage


@pytest.fixture(params=["local", "memory"])
def place(request, tmp_path):
    """A directory that is not there yet, or a URL of fsspec."""
    return str(tmp_path / "store") if request.param == "local" else f"memory://{uuid.uuid4().hex}"


@pytest.fixture
def storage(place):
    return open_storage(place)
