"""What every test runs under."""

import os
from pathlib import Path

import pytest

# The tests' models are so small that a second thread costs more than it does, the more so when
# several processes test at once. Set before torch is imported, and inherited by subprocesses.
os.environ.setdefault("OMP_NUM_THREADS", "1")

TESTS = Path(__file__).parent / "tests"


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Look for doctests in the sources only, not in what the tests share with each other."""
    is_shared = collection_path.suffix == ".py" and not collection_path.name.startswith("test_")
    return True if is_shared and collection_path.is_relative_to(TESTS) else None


@pytest.fixture(autouse=True)
def one_directory_per_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a directory of the test's own, so that no run is left behind in the repository."""
    monkeypatch.chdir(tmp_path)
