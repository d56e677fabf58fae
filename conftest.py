"""What every test runs under."""

import os
from pathlib import Path

import pytest

# The tests' models are so small that a second thread costs more than it does, the more so when
# several processes test at once. Set before torch is imported, and inherited by subprocesses.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(autouse=True)
def one_directory_per_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a directory of the test's own, so that no run is left behind in the repository."""
    monkeypatch.chdir(tmp_path)
