"""A real board in a real browser: Debian's Chromium, driven by Playwright.

Where Chromium or the page is missing, that is said loudly and the tests are left out; where
CI=true, they fail.
"""

import os
import shutil
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path

import pytest

from hookloop.errors import HookloopError

ARGUMENTS = [
    "--no-sandbox",  # The tests may run as root.
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
ROOT = Path(__file__).parents[4]
PAGE = Path(__file__).parents[2] / "page"


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(item.fspath).is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.slow)


def leave_out(reason):
    """Say why the tests of the board are left out; fail where nothing may be."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)
    print(f"\n*** THE BOARD IS NOT TESTED: {reason} ***\n", file=sys.__stderr__, flush=True)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def page_directory():
    from hookloop_board.page import built_page

    try:
        return built_page()
    except HookloopError as error:
        return leave_out(str(error))


@pytest.fixture(scope="session")
def browser():
    path = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    if path is None:
        leave_out("Chromium is missing: apt-get install chromium.")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def axe(page_directory):
    """The checks of axe-core, which npm installs to build the page."""
    script = PAGE / "node_modules" / "axe-core" / "axe.min.js"
    if not script.is_file():
        leave_out("axe-core is missing: run make board.")
    return script.read_text(encoding="utf-8")


class Board:
    """A running board and its address."""

    def __init__(self, *arguments, cwd, **environment):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "hookloop", "board", "--port", "0", *map(str, arguments)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=cwd,
            env={**os.environ, **environment},
        )
        line = self.process.stdout.readline()
        while line and "http://" not in line:  # There may be a word about missing runs before it.
            line = self.process.stdout.readline()
        self.address = line.split()[4] if line else ""
        self.origin = self.address.partition("?")[0].rstrip("/")

    def end(self):
        self.process.terminate()
        self.process.wait(30)
        self.process.stdout.close()


@pytest.fixture(scope="session")
def boards(page_directory):
    """Start boards; they end with the tests."""
    started = []

    def start(*arguments, cwd, **environment):
        started.append(Board(*arguments, cwd=cwd, **environment))
        assert started[-1].address, "the board has ended"
        return started[-1]

    yield start
    for board in started:
        board.end()


@pytest.fixture
def serve(boards, tmp_path):
    """Start a board over the directory of a test."""
    return partial(boards, cwd=tmp_path)


@pytest.fixture
def tab(browser):
    """A page of the browser. Any error in it, and any request elsewhere, fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab = context.new_page()
    tab.set_default_timeout(30_000)
    problems, requests = [], []
    tab.on("pageerror", lambda error: problems.append(str(error)))
    tab.on("console", lambda one: problems.append(one.text) if one.type == "error" else None)
    tab.on("dialog", lambda one: (problems.append(f"dialog: {one.message}"), one.dismiss()))
    tab.on("request", lambda request: requests.append(request.url))
    tab.problems, tab.requests = problems, requests
    yield tab
    context.close()
    assert not problems, problems
    foreign = [
        one
        for one in requests
        if not one.startswith(("http://localhost", "http://127.0.0.1", "data:", "blob:", "file:"))
    ]
    assert not foreign, foreign


TRAINING = """
import sys, time
from pathlib import Path

sys.path[:0] = {path!r}
from tests.tiny import make_classifier
from hookloop import Hook
from hookloop.hooks import SaveCheckpoint, WriteMetrics


class Slow(Hook):
    def after_train_iter(self, run):
        time.sleep({pause})


make_classifier(
    default_hooks={{
        "console": None,
        "metrics": WriteMetrics(every=1),
        "checkpoint": SaveCheckpoint(every="1 epochs", keep=2),
    }},
    hooks=[Slow()],
    max_epochs={epochs},
    run_dir={directory!r},
).train()
"""


@pytest.fixture
def train(tmp_path):
    """Start a slow training in a process of its own; it is killed at the end of the test."""
    started = []

    def start(directory, epochs=10_000, pause=0.05):
        path = [str(ROOT), str(ROOT / "src")]
        code = TRAINING.format(path=path, pause=pause, epochs=epochs, directory=str(directory))
        with warnings.catch_warnings():
            process = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
