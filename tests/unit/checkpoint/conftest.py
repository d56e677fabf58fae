"""Locations for checkpoints, for tests that hold in each of them."""

import uuid

import pytest

from hookloop.checkpoint.storage import open_storage


@pytest.fixture(params=["local", "memory"])
def location(request, tmp_path):
    """A directory that is not there yet, or a URL of fsspec."""
    return str(tmp_path / "store") if request.param == "local" else f"memory://{uuid.uuid4().hex}"


@pytest.fixture
def storage(location):
    return open_storage(location)
