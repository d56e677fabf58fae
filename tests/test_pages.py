"""What holds for every page without running it: each block is checked by somebody.

tests/integration/test_docs.py runs the blocks; `python -m tests.pages` lists how each is checked.
"""

import json
import re
import shlex
from pathlib import Path

import click
import pytest
from tests.pages import (
    EXAMPLES,
    GENERATED,
    LANGUAGES,
    PAGES,
    ROOT,
    blocks_of,
    check_of,
    every_block,
    fences_of,
    indented_code,
    place,
)

from hookloop.cli.main import VERBS, cli
from hookloop.testing import RecordCalls, tiny_trainer

# A page that cannot be tried may be wrong, so this number only falls: another machine, several
# machines, Docker, Ray, MMEngine (run by `make graft`), a network, and the tests themselves.
NOT_RUN = 8

SMOKE = [
    ROOT / "tests" / "integration" / f"test_{name}.py"
    for name in ("examples", "further_examples", "two_minutes")
]
NOT_TRAINED = {"ray_train"}  # Its README says so: it needs Ray.


def test_every_block_names_its_language():
    for page, block in every_block():
        assert block.language in LANGUAGES, f"{place(page, block)}: ```{block.language}"


def test_every_block_is_found():
    for page in PAGES:
        assert fences_of(page) == 2 * len(blocks_of(page)), page
        assert not indented_code(page), f"{page}: put it between ``` and ```"


def test_every_block_is_checked():
    unchecked = [place(page, block) for page, block in every_block() if not check_of(page, block)]
    assert not unchecked, "output that nobody compares: put it right below the block that prints it"


@pytest.mark.parametrize(
    ("page", "is_held"),
    [
        ("```python\nprint(1)\n```\n\n```text\n1\n```\n", True),
        ("```console\n$ echo 1\n1\n```\n", True),
        (
            "```python\nprint(1)\n```\n\nLater, it is said to print:\n\n```text\n1\n```\n",
            False,
        ),
        ("```text\n$ hookloop runs\n```\n", False),
        ("```\nhookloop runs\n```\n", False),
    ],
)
def test_output_apart_from_what_prints_it_is_found(page, is_held, tmp_path):
    path = tmp_path / "page.md"
    path.write_text(page)
    assert all(check_of(path, block) for block in blocks_of(path)) == is_held


def test_the_drawing_of_the_mount_points_has_the_order_of_a_real_training():
    drawn = blocks_of(ROOT / "docs" / "mount-points.md")[0].text.split()
    recorder = RecordCalls()
    tiny_trainer(recorder, max_epochs=1).train()
    made = list(dict.fromkeys(name for name in recorder.calls if name in drawn))
    only_on_a_resume = "after_load_checkpoint"
    names = dict.fromkeys(name for name in drawn if name.startswith(("before_", "after_")))
    assert [name for name in names if name != only_on_a_resume] == made


def test_few_blocks_are_not_run():
    left_out = [place(page, block) for page, block in every_block() if not block.runs]
    assert len(left_out) == NOT_RUN, left_out


def test_the_generated_pages_are_those_that_a_script_writes():
    text = (ROOT / "scripts" / "make_docs.py").read_text(encoding="utf-8")
    for page in GENERATED:
        assert page.name in text or page.parent.name == "python", page


def test_a_file_of_a_page_is_used_by_a_command_below_it():
    for page in PAGES:
        found = blocks_of(page)
        last = max((b.line for b in found if b.language == "console" and b.runs), default=0)
        for block in found:
            if block.text.startswith("# before_"):  # tests/downstream/test_migration.py runs these.
                continue
            assert not block.is_file or block.line < last, (
                f"{place(page, block)}: no command follows"
            )


# --- commands that are shown and not run ---------------------------------------------------------

INLINE = re.compile(r"`(?:srun [^`]*?|torchrun [^`]*? -m )?(hookloop [a-z][^`]*)`")


def parse(command):
    """Parse a line of ``hookloop``, and raise as it would for an option that it does not have."""
    words = shlex.split(command, comments=True)[1:]
    words = words[
        : next((i for i, word in enumerate(words) if word in (">", "|", "&", "||")), None)
    ]
    words = [word for word in words if word not in ("...",) and not word.startswith("[")]
    if not words or words[0] not in VERBS:
        assert words and words[0].startswith("-"), f"there is no command {words}"
        return
    verb, arguments = words[0], words[1:]
    found = cli.get_command(click.Context(cli), verb)
    assert found is not None
    # Closed also if parsing fails, which takes back what `--alias` does to the whole process.
    context = found.context_class(
        found, info_name=verb, parent=click.Context(cli), **found.context_settings
    )
    try:
        with context:
            found.parse_args(context, list(arguments))
    except click.exceptions.Exit:
        pass  # --help
    except (click.MissingParameter, click.BadParameter, click.BadOptionUsage):
        pass  # Words that stand for something, RUN or --to FILE; an option without its value.
    except click.NoSuchOption as error:
        raise AssertionError(f"{command}: {error.message}") from error


def commands_in(page):
    text = page.read_text(encoding="utf-8")
    for match in INLINE.finditer(text):
        yield match[1].replace("\n", " ").replace("\\|", "|")
    for block in blocks_of(page):
        if block.language == "shell" and (not block.runs or EXAMPLES in page.parents):
            for line in block.text.splitlines():
                found = re.search(r"(?:^|-m |srun [^#]*?)(hookloop \S.*)", line)
                if found:
                    yield found[1]
        elif block.language == "dockerfile":
            parts = re.findall(r"^(?:ENTRYPOINT|CMD) (\[.*\])", block.text, flags=re.MULTILINE)
            yield shlex.join(word for part in parts for word in json.loads(part))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_that_are_only_named_have_options_that_exist(page):
    for command in commands_in(page):
        parse(command)


def test_a_wrong_option_is_found():
    with pytest.raises(AssertionError, match="--restart-often"):
        parse("hookloop train config.yaml --restart-often 3")
    with pytest.raises(AssertionError, match="there is no command"):
        parse("hookloop fly config.yaml")


def test_targets_of_make_that_pages_name_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for name in re.findall(r"(?:`|^)make ([a-z][a-z-]*)", text, flags=re.MULTILINE):
            assert re.search(rf"^{name}:", makefile, flags=re.MULTILINE), f"{page}: make {name}"


# --- examples ------------------------------------------------------------------------------------


def test_every_example_is_trained_by_a_test():
    tests = "".join(path.read_text(encoding="utf-8") for path in SMOKE)
    beside = ROOT / "packages" / "hookloop-dialects" / "tests"
    tests += (beside / "test_emloop_document.py").read_text(encoding="utf-8")
    names = {readme.parent.name for readme in EXAMPLES.glob("*/README.md")}
    assert not {name for name in names - NOT_TRAINED if f'"{name}"' not in tests}


def test_files_that_the_readme_of_an_example_names_exist():
    for readme in EXAMPLES.glob("*/README.md"):
        for block in blocks_of(readme):
            for name in re.findall(r"examples/[\w/]+\.(?:yaml|py)", block.text):
                assert (ROOT / name).is_file(), f"{readme}: {name}"


def test_output_in_the_readme_of_an_example_is_the_recorded_one():
    for readme in EXAMPLES.glob("*/README.md"):
        shown = [block.text for block in blocks_of(readme) if block.language == "text"]
        if shown:
            recorded = Path(readme.parent / "sample.txt").read_text(encoding="utf-8")
            assert shown == [recorded], f"{readme}: `make sample` writes it again"


DATE = re.compile(r"\d{1,2}\s+(November|December)\s+2026|2026-\d\d-\d\d")


@pytest.mark.parametrize("page", sorted(EXAMPLES.glob("*/README.md")), ids=lambda p: p.parent.name)
def test_every_example_has_a_result_with_its_date(page):
    text = page.read_text(encoding="utf-8")
    _, result, rest = text.partition("Result")
    assert result, "what it reached"
    assert DATE.search(rest), "when"


def test_every_table_of_times_has_its_command_and_date():
    sections = (ROOT / "docs" / "speed.md").read_text(encoding="utf-8").split("\n## ")
    timed = [one for one in sections if re.search(r"^\|.*\d", one, flags=re.MULTILINE)]
    assert len(timed) > 4
    for section in timed:
        title = section.splitlines()[0]
        assert DATE.search(section), f"{title}: when"
        assert re.search(r"`(make bench|python -m bench|python bench)", section), f"{title}: how"


def test_the_table_of_results_for_programs_has_every_command():
    text = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    table = text.partition("## For programs")[2].partition("\n## ")[0]
    first_cells = re.findall(r"^\| (`.*?) \|", table, flags=re.MULTILINE)
    named = [name for cell in first_cells for name in re.findall(r"`([\w-]+)`", cell)]
    assert sorted(named) == sorted(VERBS)


def test_every_command_that_builds_a_config_is_named_where_trust_is_explained():
    text = (ROOT / "docs" / "trust.md").read_text(encoding="utf-8")
    listed = text.partition("These commands build")[2].partition("Do not use them")[0]
    builds = {"resume", "predict", "export", "reproduce"}  # They take a run.
    for verb in VERBS:
        command = cli.get_command(click.Context(cli), verb)
        if any(one.name == "config" and isinstance(one, click.Argument) for one in command.params):
            builds.add(verb)
    assert builds <= set(re.findall(r"`([\w-]+)`", listed))
