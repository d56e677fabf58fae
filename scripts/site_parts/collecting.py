"""Collect what the site shows: docs/, and every file of the repository that its pages link.

On a code host, a page links files outside of docs/ by their relative paths. The site gets a copy of
each: Markdown as it is, other text as a page that shows it, a folder as a page that lists it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
ELSEWHERE = "project"  # The folder of the site for what is not in docs/.

LINK = re.compile(r"(\]\()([^)#\s]*)((?:#[^)\s]*)?\))")
CODE = re.compile(r"(^ *```.*?^ *```|`[^`\n]+`)", flags=re.DOTALL | re.MULTILINE)
ROW = re.compile(r"^\|.*$", flags=re.MULTILINE)
INLINE = re.compile(r"`[^`\n]+`")
PICTURES = {".png", ".svg", ".jpg", ".gif"}
LANGUAGES = {
    ".py": "python", ".yaml": "yaml", ".yml": "yaml", ".toml": "toml", ".json": "json",
    ".sh": "shell", "Makefile": "make",
}  # fmt: skip


class BrokenLinkError(Exception):
    """A page links something that is not there."""


def collect(pages: list[Path]) -> dict[PurePosixPath, bytes]:
    """Return the files of the site, beginning with these pages, by their paths in it."""
    files: dict[PurePosixPath, bytes] = {}
    waiting = list(pages)
    while waiting:
        source = waiting.pop()
        place = place_of(source)
        if place not in files:
            content, linked = read(source)
            files[place] = content
            waiting += linked
    return files


def read(source: Path) -> tuple[bytes, list[Path]]:
    """Return a file as the site shows it, and the files that it links."""
    if source.suffix in PICTURES:
        return source.read_bytes(), []
    if source.suffix == ".md":
        text = source.read_text(encoding="utf-8")
    elif source.is_dir():
        text = _listing(source)
    else:
        text = _shown(source)
    linked = [target for _, target in links(text, source) if target is not None]
    return _plain_pipes(_relinked(text, source)).encode(), linked


def links(text: str, source: Path) -> Iterator[tuple[str, Path | None]]:
    """Yield the links of a page, each with the file of the repository that it leads to."""
    for prose in CODE.split(text)[::2]:
        for match in LINK.finditer(prose):
            yield match[2] + match[3][:-1], _target(match[2], source)


def place_of(source: Path) -> PurePosixPath:
    """Return the path of a file in the site."""
    if source == DOCS:
        return PurePosixPath("index.md")
    if source.is_relative_to(DOCS):
        return PurePosixPath(source.relative_to(DOCS).as_posix())
    place = PurePosixPath(ELSEWHERE, source.relative_to(ROOT).as_posix())
    if source.is_dir():
        return place / "index.md"
    if source.suffix == ".md" or source.suffix in PICTURES:
        return place
    return place.with_name(f"{place.name}.md")


def _target(link: str, source: Path) -> Path | None:
    if not link or "://" in link or link.startswith("mailto:"):
        return None
    folder = source if source.is_dir() else source.parent
    target = Path(os.path.normpath(folder / link))
    if not target.exists() or not target.is_relative_to(ROOT):
        raise BrokenLinkError(f"{source.relative_to(ROOT)} links {link}, which is not there.")
    readme = target / "README.md"
    return readme if readme.is_file() else target


def _relinked(text: str, source: Path) -> str:
    """Let the links of a page lead to the places that the files have in the site."""
    here = place_of(source).parent

    def new(match: re.Match[str]) -> str:
        target = _target(match[2], source)
        if target is None:
            return match[0]
        return f"{match[1]}{os.path.relpath(place_of(target), here)}{match[3]}"

    parts = CODE.split(text)
    parts[::2] = [LINK.sub(new, prose) for prose in parts[::2]]
    return "".join(parts)


def _plain_pipes(text: str) -> str:
    """Write bars within the code of a table as they are: only code hosts want them escaped."""
    return ROW.sub(lambda row: INLINE.sub(lambda code: code[0].replace("\\|", "|"), row[0]), text)


def _shown(source: Path) -> str:
    language = LANGUAGES.get(source.suffix) or LANGUAGES.get(source.name, "text")
    fence = "````"  # Longer than what a docstring may contain.
    text = source.read_text(encoding="utf-8").rstrip()
    return f"# {source.relative_to(ROOT)}\n\n{fence}{language}\n{text}\n{fence}\n"


def _listing(folder: Path) -> str:
    found = [path for path in sorted(folder.iterdir()) if not path.name.startswith((".", "__pyc"))]
    rows = [f"- [{path.name}]({path.name}){_first_line(path)}" for path in found]
    return f"# {folder.relative_to(ROOT)}\n\n" + "\n".join(rows) + "\n"


def _first_line(path: Path) -> str:
    """Return the title of a folder's README, or nothing."""
    readme = path / "README.md"
    return f": {title(readme)}" if readme.is_file() else ""


def title(page: Path) -> str:
    """Return the first heading of a page."""
    found = re.search(r"^# (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    if found is None:
        raise BrokenLinkError(f"{page.relative_to(ROOT)} has no title: its first line is '# ...'.")
    return found[1].replace("`", "")
