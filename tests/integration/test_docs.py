"""Every code block of every page runs: of the README and of docs/, found by globbing.

- ``python`` blocks of a page run from top to bottom in one namespace, sessions with ``>>>`` as
  doctests.
- ``yaml`` blocks train as configs; what one does not say is taken from tests/docs_project.
- ``console`` blocks run the lines that begin with ``$``, ``shell`` blocks run as scripts.
- A block that begins with the name of a file, ``# train.py``, is that file for commands below it.
- What stands below a ``$`` line, and a ``text`` block right below a ``python``, ``console`` or
  ``shell`` block or below a few words, is what that prints; ``...`` stands for what varies
  (tests/printed.py). A ``text`` block elsewhere, or one marked ``text drawing``, is not compared.
- ``toml`` and ``json`` blocks are read. A block of no language is an error: nobody could tell
  whether it should run.

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
from tests.printed import assert_printed, file_of, run_console, write_file

import hookloop
import hookloop.hooks
from hookloop.config.build import build
from hookloop.config.load import load

pytestmark = pytest.mark.slow  # Every page trains.

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PROJECT = ROOT / "tests" / "docs_project"
TUTORIAL = ROOT / "docs" / "tutorial"  # One project from page to page: test_tutorial.py walks it.
STEP_BY_STEP = [ROOT / "docs" / name for name in ("how-to", "concepts", "migration")]
LANGUAGES = {"python", "yaml", "console", "shell", "toml", "json", "text", "text drawing"}
MAX_NOT_COMPARED = 60  # Text that is apart from what printed it, if anything did.
MAX_NOT_RUN = 15  # A page that cannot be tried may be wrong. Two of these run in `make graft`.

FENCE = re.compile(r"^( *)```([^\n]*)\n(.*?)^\1``` *$", flags=re.DOTALL | re.MULTILINE)
PRINTING = ("python", "console", "shell")
NOT_RUN = re.compile(r"# Not run in the tests: \S+")


@dataclass
class Block:
    language: str
    text: str
    line: int
    below: str = ""
    """The text of a block of output right below this one."""

    @property
    def runs(self):
        return NOT_RUN.match(self.text) is None

    @property
    def is_file(self):
        return file_of(self.text) is not None


def blocks_of(page):
    text = page.read_text(encoding="utf-8")
    found, end = [], 0
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 2
        block = Block(match[2].strip(), textwrap.dedent(match[3]), line)
        between = text[end : match.start()].split()  # Nothing, or a few words: "Both print".
        is_next = found and found[-1].language in PRINTING and len(between) < 5
        if is_next and block.language == "text":
            found[-1].below = block.text
        found.append(block)
        end = match.end()
    return found


def shown_output(block):
    """What a page shows that the commands of a block print."""
    lines = block.text.splitlines(keepends=True) if block.language == "console" else []
    return "".join(one for one in lines if not one.startswith(("$ ", "# "))) + block.below


def with_blocks(*languages):
    """The pages that have blocks to run in these languages."""
    return [
        pytest.param(page, id=str(page.relative_to(ROOT)))
        for page in PAGES
        if TUTORIAL not in page.parents and blocks(page, *languages)
    ]


def blocks(page, *languages):
    """The blocks to run in these languages; files run by the commands that name them."""
    found = [block for block in blocks_of(page) if block.language in languages]
    return [block for block in found if block.runs and not block.is_file]


def is_step_by_step(page):
    """Whether the commands of a page run one by one, each with its output below it."""
    return not set(STEP_BY_STEP).isdisjoint(page.parents)


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
    outputs = "".join(block.below for page in PAGES for block in blocks_of(page))
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
            if block.below:
                assert_printed(block.below, capsys.readouterr().out, f"{place}:{block.line}")


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


def with_commands():
    """The pages with commands; those of many ranks start a dozen processes each."""
    return [
        pytest.param(*one.values, id=one.id, marks=[pytest.mark.long] if "ranks" in one.id else [])
        for one in with_blocks("console", "shell")
    ]


@pytest.mark.parametrize("page", with_commands())
def test_the_commands_of_a_page_succeed(page, project):
    # First the `hookloop` that starts at once, then Python and torchrun of this environment.
    here = f"{Path(warm.command()).parent}{os.pathsep}{Path(sys.executable).parent}"
    environment = os.environ | {"PATH": f"{here}{os.pathsep}{os.environ['PATH']}"}
    if is_step_by_step(page):
        run_and_compare(page, project)
        return
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
        if expected := shown_output(block):
            assert_printed(expected, done.stdout, f"{page.relative_to(ROOT)}:{block.line}")


def run_and_compare(page, directory):
    for block in blocks_of(page):
        if block.is_file:
            write_file(block.text, directory)
        elif block.language == "console" and block.runs:
            run_console(block.text, directory, f"{page.relative_to(ROOT)}:{block.line}")


def test_a_file_of_a_page_is_used_by_a_command_below_it():
    for page in PAGES:
        found = blocks_of(page)
        last = max((b.line for b in found if b.language == "console" and b.runs), default=0)
        for block in found:
            where = f"{page.relative_to(ROOT)}:{block.line}"
            if block.text.startswith("# before_"):  # tests/downstream/test_migration.py runs these.
                continue
            assert not block.is_file or block.line < last, f"{where}: no command follows"


# --- what the README promises besides ------------------------------------------------------------


def test_the_readme_has_the_whole_table_of_costs():
    speed = (ROOT / "docs" / "speed.md").read_text(encoding="utf-8")
    table = speed[speed.index("| work | hookloop | Ignite") :].partition("\n\n")[0]
    assert table in (ROOT / "README.md").read_text(encoding="utf-8")


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
