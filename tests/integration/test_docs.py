"""Every code block of every page runs: of the README and of docs/, found by globbing.

- ``python`` blocks of a page run from top to bottom in one namespace, sessions with ``>>>`` as
  doctests.
- ``yaml`` blocks train as configs; what one does not say is taken from tests/docs_project.
- ``console`` blocks run the lines that begin with ``$``, ``shell`` blocks run as scripts.
- ``toml`` and ``json`` blocks are read. A block of no language is an error: nobody could tell
  whether it should run.
- A ``text`` block right behind a ``python``, ``console`` or ``shell`` one is its output, and so are
  the other lines of a ``console`` block: they are compared with what was printed, ``...`` for what
  varies. A ``text`` block elsewhere, or one that is marked ``text drawing``, is not compared.

A block that cannot run here begins with a comment for its readers, too: ``# Not run in the tests:
it needs a cluster.``
"""

import doctest
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
import yaml
from tests import warm

import hookloop
import hookloop.hooks
from hookloop.config.build import build
from hookloop.config.load import load

pytestmark = pytest.mark.slow  # Every page trains.

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PROJECT = ROOT / "tests" / "docs_project"
LANGUAGES = {"python", "yaml", "console", "shell", "toml", "json", "text", "text drawing"}
MAX_NOT_COMPARED = 60  # Text that is apart from what printed it, if anything did.
MAX_NOT_RUN = 12  # A page that cannot be tried may be wrong. Two of these run in `make graft`.

FENCE = re.compile(r"^( *)```([^\n]*)\n(.*?)^\1``` *$", flags=re.DOTALL | re.MULTILINE)
PRINTING = ("python", "console", "shell")
NOT_RUN = re.compile(r"# Not run in the tests: \S+")


@dataclass
class Block:
    language: str
    text: str
    line: int
    output: str = ""

    @property
    def runs(self):
        return NOT_RUN.match(self.text) is None


def blocks_of(page):
    text = page.read_text(encoding="utf-8")
    found, end = [], 0
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 2
        block = Block(match[2].strip(), textwrap.dedent(match[3]), line)
        if block.language == "console":
            lines = block.text.splitlines(keepends=True)
            block.output = "".join(one for one in lines if not one.startswith(("$ ", "# ")))
        is_next = found and not text[end : match.start()].strip()
        if block.language == "text" and is_next and found[-1].language in PRINTING:
            found[-1].output += block.text
        found.append(block)
        end = match.end()
    return found


def assert_printed(block, printed, place):
    """Compare what a block printed with what its page shows."""
    if block.output:
        flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
        same = doctest.OutputChecker().check_output(block.output, printed, flags)
        assert same, f"{place}:{block.line} printed\n{printed}\nand the page has\n{block.output}"


def with_blocks(*languages):
    """The pages that have blocks to run in these languages."""
    return [
        pytest.param(page, id=str(page.relative_to(ROOT)))
        for page in PAGES
        if any(block.language in languages and block.runs for block in blocks_of(page))
    ]


def blocks(page, *languages):
    return [block for block in blocks_of(page) if block.language in languages and block.runs]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A directory with the project that the pages speak of, as the working directory."""
    shutil.copytree(PROJECT, tmp_path, dirs_exist_ok=True)
    digits = ROOT / "examples" / "digits"
    shutil.copytree(digits, tmp_path / "examples" / "digits")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.syspath_prepend(tmp_path / "examples" / "digits")
    for name in ("REPORT_PASSWORD", "REPORT_TOKEN"):  # Secrets that a page names.
        monkeypatch.setenv(name, f"the {name} of a page")
    before, path = set(sys.modules), list(sys.path)
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - before:
        file = getattr(sys.modules[name], "__file__", None)
        if file and Path(file).is_relative_to(tmp_path):
            del sys.modules[name]


def test_every_block_names_its_language():
    for page in PAGES:
        for block in blocks_of(page):
            where = f"{page.relative_to(ROOT)}:{block.line}"
            assert block.language in LANGUAGES, f"{where}: ```{block.language}"


def test_every_fence_is_found():
    for page in PAGES:
        fences = re.findall(r"^ *```", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert len(fences) == 2 * len(blocks_of(page)), page


def test_few_blocks_are_left_out():
    left_out = [block for page in PAGES for block in blocks_of(page) if not block.runs]
    assert len(left_out) <= MAX_NOT_RUN


def test_most_output_is_compared():
    shown = [block.text for page in PAGES for block in blocks_of(page) if block.language == "text"]
    outputs = "".join(block.output for page in PAGES for block in blocks_of(page))
    assert len([text for text in shown if text not in outputs]) <= MAX_NOT_COMPARED


@pytest.mark.parametrize("page", with_blocks("python"))
def test_the_python_of_a_page_runs_from_top_to_bottom(page, project, capsys):
    names = {"__name__": "page", "torch": torch}
    names |= {name: getattr(hookloop.hooks, name) for name in hookloop.hooks.__all__}
    for block in blocks(page, "python"):
        place = f"{page.relative_to(ROOT)}"
        if block.text.startswith(">>>"):
            run_session(block, names, place)
        else:
            code = "\n" * (block.line - 1) + block.text  # So that a traceback has the right line.
            capsys.readouterr()
            exec(compile(code, place, "exec"), names)
            assert_printed(block, capsys.readouterr().out, place)


def run_session(block, names, place):
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    test = doctest.DocTestParser().get_doctest(block.text, dict(names), place, place, block.line)
    said = []
    doctest.DocTestRunner(optionflags=flags).run(test, out=said.append)
    assert not said, "".join(said)


@pytest.mark.parametrize("page", with_blocks("yaml"))
def test_the_configs_of_a_page_train(page, project):
    for block in blocks(page, "yaml"):
        (project / "page.yaml").write_text(completed(block.text))
        trainer = build(load("page.yaml", ["max_epochs=1", "default_hooks.console=null"]))
        outcome = trainer.train()
        assert outcome.status in ("completed", "stopped"), f"{page}:{block.line}"
        if trainer.run.test_data:
            trainer.test()


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


@pytest.mark.slow
@pytest.mark.parametrize("page", with_blocks("console", "shell"))
def test_the_commands_of_a_page_succeed(page, project):
    # First the `hookloop` that starts at once, then Python and torchrun of this environment.
    here = f"{Path(warm.command()).parent}{os.pathsep}{Path(sys.executable).parent}"
    environment = os.environ | {"PATH": f"{here}{os.pathsep}{os.environ['PATH']}"}
    run = "runs/2026-01-31_09-30-00"  # The run that pages speak of.
    scripts, shown = [], blocks(page, "console", "shell")
    for block in shown:
        lines = block.text.splitlines()
        commands = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        scripts.append("\n".join(commands if block.language == "console" else lines))
    if any(run in script for script in scripts):
        scripts.insert(0, f"hookloop train config.yaml run_dir={run}")
        shown.insert(0, Block("shell", "", 0))
    for script, block in zip(scripts, shown, strict=True):
        done = subprocess.run(
            ["bash", "-e", "-c", script], capture_output=True, text=True, env=environment,
            timeout=900, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{script}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        assert_printed(block, done.stdout, page.relative_to(ROOT))


# --- what the README promises besides ------------------------------------------------------------


def test_the_readme_has_the_whole_table_of_costs():
    speed = (ROOT / "docs" / "speed.md").read_text(encoding="utf-8")
    table = speed[speed.index("| work | hookloop | Ignite") :].partition("\n\n")[0]
    assert table in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_names_every_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    section = (ROOT / "README.md").read_text(encoding="utf-8").partition("Extras bring")[2]
    named = set(re.findall(r"`(\w+)`", section.partition("On Linux")[0]))
    assert named == set(project["optional-dependencies"]) - {"dev", "examples"}
