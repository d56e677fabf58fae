"""What every test runs under."""

import logging
import os
import sys
from collections.abc import Iterator
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


@pytest.fixture(autouse=True)
def nothing_is_left_to_the_next_test() -> Iterator[None]:
    """Take back what a test did to the logger, and to the registry that MMEngine's files share."""
    logger = logging.getLogger("hookloop")
    level, handlers = logger.level, list(logger.handlers)
    yield
    logger.setLevel(level)
    logger.handlers[:] = handlers
    registry = sys.modules.get("hookloop.dialects.mmengine.registry")
    names = getattr(registry, "HOOKS").module_dict if registry is not None else {}  # noqa: B009
    for name in [n for n, one in names.items() if not one.__module__.startswith("hookloop")]:
        del names[name]
