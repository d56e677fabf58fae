"""What every test runs under."""

import logging
import os
import signal
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

# The tests' models are so small that a second thread costs more than it does, the more so when
# several processes test at once. Set before torch is imported, and inherited by subprocesses.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Under nohup, and in the background of a shell, these signals are ignored, also in the processes
# that tests start; a run respects that, and tests that send them would wait forever.
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

TESTS = Path(__file__).parent / "tests"


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Look for doctests in the sources only, not in what the tests share with each other.

    The graft imports the real package, which only the environment of `make downstream` has.
    """
    if "graft" in collection_path.parts and find_spec("mmengine") is None:
        return True
    is_shared = collection_path.suffix == ".py" and not collection_path.name.startswith("test_")
    return True if is_shared and collection_path.is_relative_to(TESTS) else None


@pytest.fixture(autouse=True)
def one_directory_per_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a directory of the test's own, so that no run is left behind in the repository."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def nothing_is_left_to_the_next_test() -> Iterator[None]:
    """Take back what a test did to the logger, and to the registries that foreign files share."""
    logger = logging.getLogger("hookloop")
    level, handlers = logger.level, list(logger.handlers)
    # Those that the test's own file has registered stay.
    known = {(id(names), name) for names in _registries() for name in names}
    yield
    logger.setLevel(level)
    logger.handlers[:] = handlers
    for names in _registries():
        added = [name for name in names if (id(names), name) not in known]
        # Our own classes are registered when they are imported, which happens once.
        for name in [name for name in added if not names[name].__module__.startswith("hookloop")]:
            del names[name]


def _registries() -> Iterator[dict[str, type]]:
    """Yield the classes that files have registered with foreign decorators, by name."""
    adapters = sys.modules.get("hookloop.trainer.adapters")
    for dialect in adapters.dialects().values() if adapters is not None else ():
        for module, name, attribute in dialect.registries:
            registry = getattr(sys.modules.get(module), name, None)
            yield getattr(registry, attribute, {})
