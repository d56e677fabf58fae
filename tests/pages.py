"""The pages with their fenced blocks, and how a test holds each of them.

Pages are found by globbing. ``python -m tests.pages`` lists every block with its check.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.printed import file_of

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
EXAMPLES = ROOT / "examples"
TUTORIAL = DOCS / "tutorial"  # One project from page to page.
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *(
        path
        for folder in (DOCS, EXAMPLES, ROOT / "packages")
        for path in sorted(folder.rglob("*.md"))
        if not {"node_modules", ".venv"} & set(path.parts)
    ),
]
# scripts/make_docs.py writes these, and tests/test_shape.py compares them with what it writes.
GENERATED = [
    DOCS / "mount-points.md",
    DOCS / "hooks.md",
    DOCS / "concepts" / "from-request-to-return.md",
    DOCS / "reference" / "commands.md",
    DOCS / "reference" / "config-keys.md",
    *sorted((DOCS / "reference" / "python").glob("*.md")),
]
LANGUAGES = {"python", "yaml", "console", "shell", "toml", "json", "text", "dockerfile"}
PRINTING = ("python", "console", "shell")

_FENCE = re.compile(r"^( *)```([^\n]*)\n(.*?)^\1``` *$", flags=re.DOTALL | re.MULTILINE)
_NOT_RUN = re.compile(r"# Not run in the tests: (\S.*)\n")
_INDENTED = re.compile(r"^\n((?: {4}\S.*\n)+)", flags=re.MULTILINE)


@dataclass
class Block:
    """One fenced block of a page."""

    language: str
    text: str
    line: int
    below: str = ""
    """The text of a block of output right below this one."""
    is_output: bool = field(default=False)
    """Whether this is such a block of output."""

    @property
    def reason(self) -> str | None:
        """Why the block does not run here, in its own words."""
        match = _NOT_RUN.match(self.text)
        return match[1] if match else None

    @property
    def runs(self) -> bool:
        return self.reason is None

    @property
    def is_file(self) -> bool:
        return file_of(self.text) is not None


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found: list[Block] = []
    end = 0
    for match in _FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 2
        block = Block(match[2].strip(), textwrap.dedent(match[3]), line)
        between = text[end : match.start()].split()  # Nothing, or a few words: "Both print".
        if found and block.language == "text" and len(between) < 5:
            above = found[-1]
            if above.language in PRINTING and above.runs and not above.is_file:
                above.below = block.text
                block.is_output = True
        found.append(block)
        end = match.end()
    return found


def fences_of(page: Path) -> int:
    """Count the lines that begin or end a block."""
    return len(re.findall(r"^ *```", page.read_text(encoding="utf-8"), flags=re.MULTILINE))


def indented_code(page: Path) -> list[str]:
    """Return code that is set off by spaces, where nothing would say what it is."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    return [match[1] for match in _INDENTED.finditer(text) if "- " not in match[1][:8]]


def check_of(page: Path, block: Block) -> str | None:
    """Return how a test holds a block; None if nobody looks at it."""
    is_example = EXAMPLES in page.parents
    is_text = block.language == "text"
    rules = (
        (block.reason is not None, f"not run: {block.reason}"),
        (page in GENERATED and is_text, "written by scripts/make_docs.py"),
        (block.text.startswith("# before_"), "run by tests/downstream with the real package"),
        (block.is_file, "a file of the commands below it"),
        (is_example and block.language == "shell", "parsed; the example is trained for a moment"),
        (block.is_output, "compared with what the block above prints"),
        (is_example and is_text, "compared with a file of the example"),
    )
    return next((check for applies, check in rules if applies), _BY_LANGUAGE.get(block.language))


_BY_LANGUAGE = {
    "python": "run",
    "yaml": "trained",
    "console": "run; what it shows is compared",
    "shell": "run",
    "toml": "read",
    "json": "read",
    "dockerfile": "its command is parsed",
}


def every_block() -> Iterator[tuple[Path, Block]]:
    for page in PAGES:
        for block in blocks_of(page):
            yield page, block


def place(page: Path, block: Block) -> str:
    return f"{page.relative_to(ROOT)}:{block.line}"


if __name__ == "__main__":
    from collections import Counter

    held = [(place(page, block), check_of(page, block)) for page, block in every_block()]
    for where, how in held:
        print(f"{where:45}{how}")  # noqa: T201
    print()  # noqa: T201
    kinds = Counter("not run" if how and how.startswith("not run") else how for _, how in held)
    for kind, number in kinds.most_common():
        print(f"{number:5}  {kind}")  # noqa: T201
