"""Every code block of every page runs, and what a page shows is what is printed.

Pages and their blocks are found by globbing (tests/pages.py).

- ``python`` blocks of a page run from top to bottom in one namespace, sessions with ``>>>`` as
  doctests.
- ``yaml`` blocks train as configs; what one does not say is taken from tests/docs_project.
- ``console`` blocks run the lines that begin with ``$``, one by one, and compare what stands below
  each; ``shell`` blocks run as scripts. Both run from top to bottom of a page in one directory.
- A block that begins with the name of a file, ``# train.py``, is that file for commands below it.
- A ``text`` block right below a ``python``, ``console`` or ``shell`` block, or below a few words,
  is what that prints; ``...`` stands for what varies (tests/printed.py). Elsewhere it is an error.
- ``toml`` and ``json`` blocks are read, the command of a ``dockerfile`` is parsed.

A block that cannot run here begins with a comment for its readers, too: ``# Not run in the tests:
it needs a cluster.`` tests/test_pages.py counts those, and parses their commands.
"""

import doctest
import json
import os
import re
import shutil
import sys
import threading
import tomllib
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import torch
import yaml
from tests.pages import EXAMPLES, PAGES, ROOT, TUTORIAL, blocks_of, place
from tests.printed import assert_printed, run_console, run_script, write_file

import hookloop
import hookloop.hooks
from hookloop.config.build import build
from hookloop.config.load import load

pytestmark = pytest.mark.slow  # Every page trains.

PROJECT = ROOT / "tests" / "docs_project"


def with_blocks(*languages):
    """The pages that have blocks to run in these languages."""
    return [
        pytest.param(page, id=str(page.relative_to(ROOT)))
        for page in PAGES
        if not {TUTORIAL, EXAMPLES} & set(page.parents) and blocks(page, *languages)
    ]


def blocks(page, *languages):
    """The blocks to run in these languages; files run by the commands that name them."""
    found = [block for block in blocks_of(page) if block.language in languages]
    return [block for block in found if block.runs and not block.is_file]


@pytest.fixture(scope="module")
def service():
    """A service that takes messages; returns its address and what it got."""
    got = []

    class Take(BaseHTTPRequestHandler):
        def do_POST(self):
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args):
            """Print nothing."""

    server = HTTPServer(("127.0.0.1", 0), Take)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/", got
    server.shutdown()
    server.server_close()


@pytest.fixture
def project(tmp_path, monkeypatch, service):
    """A directory with the project that the pages speak of, as the working directory."""
    shutil.copytree(PROJECT, tmp_path, dirs_exist_ok=True)
    shutil.copytree(EXAMPLES / "digits", tmp_path / "examples" / "digits")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.syspath_prepend(tmp_path / "examples" / "digits")
    for name in ("REPORT_PASSWORD", "REPORT_TOKEN"):  # Secrets that a page names.
        monkeypatch.setenv(name, f"the {name} of a page")
    monkeypatch.setenv("NOTIFY_URL", service[0])
    monkeypatch.setenv("HOME", str(tmp_path))  # Where a page installs completion.
    before, path = set(sys.modules), list(sys.path)
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - before:
        file = getattr(sys.modules[name], "__file__", None)
        if file and Path(file).is_relative_to(tmp_path):
            del sys.modules[name]


@pytest.mark.parametrize("page", with_blocks("python"))
def test_the_python_of_a_page_runs_from_top_to_bottom(page, project, capsys):
    names = {"__name__": "page", "torch": torch}
    names |= {name: getattr(hookloop.hooks, name) for name in hookloop.hooks.__all__}
    for block in blocks(page, "python"):
        where = str(page.relative_to(ROOT))
        if block.text.startswith(">>>"):
            run_session(block, names, where)
        else:
            code = "\n" * (block.line - 1) + block.text  # So that a traceback has the right line.
            capsys.readouterr()
            exec(compile(code, where, "exec"), names)
            if block.below:
                assert_printed(block.below, capsys.readouterr().out, place(page, block))


def run_session(block, names, where):
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    test = doctest.DocTestParser().get_doctest(block.text, dict(names), where, where, block.line)
    said = []
    doctest.DocTestRunner(optionflags=flags).run(test, out=said.append)
    assert not said, "".join(said)


# Trackers' packages have threads of their own, which may fail after a run has ended.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("page", with_blocks("yaml"))
def test_the_configs_of_a_page_train(page, project, service):
    for block in blocks(page, "yaml"):
        (project / "page.yaml").write_text(completed(block.text))
        trainer = build(load("page.yaml", ["max_epochs=1", "default_hooks.console=null"]))
        outcome = trainer.train()
        assert outcome.status in ("completed", "stopped"), place(page, block)
        if trainer.run._internals.test_data:
            trainer.test()
        if "NOTIFY_URL" in block.text:
            assert "completed" in json.dumps(service[1][-1])


def completed(text):
    """Add to a config what it does not say."""
    said = yaml.safe_load(text)
    if "_base_" in said or {"model", "train_data"} <= set(said):
        return text
    whole = yaml.safe_load((PROJECT / "config.yaml").read_text())
    rest = {key: value for key, value in whole.items() if key not in said}
    if "step" in said:
        del rest["loss"], rest["metrics"]
    return f"{yaml.safe_dump(rest, sort_keys=False)}\n{text}"


@pytest.mark.parametrize("page", with_blocks("toml", "json"))
def test_the_data_of_a_page_can_be_read(page):
    for block in blocks(page, "toml", "json"):
        assert {"toml": tomllib.loads, "json": json.loads}[block.language](block.text)


def with_commands():
    """The pages with commands; those of many ranks start a dozen processes each."""
    return [
        pytest.param(*one.values, id=one.id, marks=[pytest.mark.long] if "ranks" in one.id else [])
        for one in with_blocks("console", "shell")
    ]


@pytest.mark.parametrize("page", with_commands())
def test_the_commands_of_a_page_succeed(page, project, monkeypatch):
    stand_in_for_slurm(project, monkeypatch)
    run = "runs/2026-01-31_09-30-00"  # The run that pages speak of.
    if any(run in block.text for block in blocks(page, "console", "shell")):
        run_console(f"$ hookloop train config.yaml run_dir={run}\n", project, "the run of pages")
    for block in blocks_of(page):
        where = place(page, block)
        if block.is_file:
            write_file(block.text, project)
        elif block.language == "console" and block.runs:
            assert not block.below, f"{where}: write the output below its command"
            run_console(block.text, project, where)
        elif block.language == "shell" and block.runs:
            printed = run_script(block.text, project, where)
            if block.below:
                assert_printed(block.below, printed, where)


def stand_in_for_slurm(directory, monkeypatch):
    """Put commands of a cluster on the path, so that the rest of a batch script is run."""
    folder = directory / "cluster"
    folder.mkdir()
    for name, text in {"srun": 'exec "$@"', "scontrol": "exit 0"}.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_JOB_NAME", "job")


# --- what the README promises besides ------------------------------------------------------------


MEASURED = re.compile(r"^(?:\*\*)?Measured\b|^## Measured$", flags=re.MULTILINE)
MONTHS = "January February March April May June July August September October November December"
DATE = re.compile(rf"(?:{MONTHS.replace(' ', '|')}) 20\d\d")


@pytest.mark.parametrize(
    "page",
    [one for one in PAGES if MEASURED.search(one.read_text(encoding="utf-8"))],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_what_was_measured_has_a_date(page):
    text = page.read_text(encoding="utf-8")
    for found in MEASURED.finditer(text):
        below = text[found.start() :].split("\n\n")[: 2 if found[0].startswith("##") else 1]
        assert DATE.search(" ".join(below)), f"{page.relative_to(ROOT)}: {below[0][:80]}"


def test_the_readme_names_every_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    section = (ROOT / "README.md").read_text(encoding="utf-8").partition("Extras bring")[2]
    named = set(re.findall(r"`([\w-]+)`", section.partition("On Linux")[0]))
    assert named == set(project["optional-dependencies"]) - {"dev", "examples"}
