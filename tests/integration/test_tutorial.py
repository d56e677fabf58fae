"""The tutorial, walked by a new user: from an empty directory through every page to the last.

Files are written as the pages give them, commands are typed as they stand there, and what they
print is what the pages show.
"""

import re

import pytest
from tests.pages import TUTORIAL, blocks_of
from tests.printed import run_console, write_file

pytestmark = pytest.mark.slow  # It trains on every page.


def pages():
    """The pages in the order in which the index links them."""
    index = (TUTORIAL / "index.md").read_text(encoding="utf-8")
    return [TUTORIAL / name for name in re.findall(r"\]\(([\w-]+\.md)\)", index)]


def test_the_index_leads_through_every_page():
    assert sorted(pages()) == sorted(set(TUTORIAL.glob("*.md")) - {TUTORIAL / "index.md"})
    for page, following in zip(pages(), pages()[1:], strict=False):
        last_line = page.read_text(encoding="utf-8").strip().splitlines()[-1]
        assert f"({following.name})" in last_line, f"{page.name} does not lead to {following.name}"


def test_a_new_user_comes_from_an_empty_directory_to_the_last_step(tmp_path):
    assert not list(tmp_path.iterdir())
    for page in pages():
        for block in blocks_of(page):
            if block.is_file:
                write_file(block.text, tmp_path)
            elif block.language == "console" and block.runs:
                run_console(block.text, tmp_path, f"{page.name}:{block.line}")
            else:
                assert block.language == "text" or not block.runs, f"{page.name}:{block.line}"
