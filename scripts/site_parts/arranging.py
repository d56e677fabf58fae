"""Arrange the pages: docs/site.yml becomes the navigation, and the settings of the generator."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from site_parts.collecting import DOCS, ROOT, BrokenLinkError, links, place_of, title

SETTINGS = DOCS / "site.yml"
STYLE = PurePosixPath("site.css")
Nav = list[Any]


def settings() -> dict[str, Any]:
    """Return what docs/site.yml says."""
    read: dict[str, Any] = yaml.safe_load(SETTINGS.read_text(encoding="utf-8"))
    return read


def navigation(entries: Nav) -> tuple[Nav, list[Path]]:
    """Return the navigation with folders replaced by their pages, and the files that it names."""
    pages: list[Path] = []
    arranged: Nav = []
    for entry in entries:
        if isinstance(entry, str):
            found = [{title(page): page} for page in _folder(entry)]
        else:
            found = [entry]
        for item in found:
            arranged += _placed(item, pages)
    return arranged, pages


def _placed(item: dict[str, Any], pages: list[Path]) -> Nav:
    ((name, value),) = item.items()
    if isinstance(value, str) and value.endswith("/") and not value.startswith("/"):
        value = [value]
    if isinstance(value, list):
        inner, named = navigation(value)
        pages += named
        return [{name: inner}] if inner else []
    page = value if isinstance(value, Path) else _file(value)
    if page is None:
        return []
    pages.append(page)
    return [{name: str(place_of(page))}]


def _file(name: str) -> Path | None:
    """Return the file that an entry names; one with a question mark may be missing."""
    path = ROOT / name[1:] if name.startswith("/") else DOCS / name.removesuffix("?")
    if path.exists():
        return path
    if name.endswith("?"):
        return None
    raise BrokenLinkError(f"docs/site.yml names {name}, which is not there.")


def _folder(name: str) -> list[Path]:
    """Return the pages of a folder, in the order in which its first page links them."""
    found = set((DOCS / name).glob("*.md"))
    first = DOCS / name / "index.md"
    if first not in found:
        return sorted(found, key=title)
    linked = [path for _, path in links(first.read_text(encoding="utf-8"), first)]
    order = [first, *dict.fromkeys(path for path in linked if path in found and path != first)]
    left_out = found - set(order)
    if left_out:
        names = ", ".join(sorted(path.name for path in left_out))
        raise BrokenLinkError(f"docs/{name}index.md does not link {names}.")
    return order


def generator_settings(nav: Nav, site: str) -> dict[str, Any]:
    """Return the settings of Zensical, which reads those of MkDocs."""
    said = settings()
    return {
        "site_name": said["name"],
        "site_description": said["description"],
        "docs_dir": "pages",
        "site_dir": site,
        "use_directory_urls": False,  # So that the site can be read from a disk.
        "theme": {
            "name": "material",
            "font": False,  # Fonts would come from another host.
            "features": [
                "content.code.copy", "navigation.footer", "navigation.indexes", "navigation.tabs",
                "navigation.top", "search.highlight", "toc.follow",
            ],
            "palette": _palettes(),
        },
        "extra_css": [str(STYLE)],
        "plugins": ["search", {"mkdocstrings": {"handlers": {"python": _python()}}}],
        "markdown_extensions": [
            "attr_list", "tables", {"toc": {"permalink": True}}, "pymdownx.highlight",
            "pymdownx.superfences",
        ],
        "nav": nav,
    }  # fmt: skip


def _palettes() -> list[dict[str, Any]]:
    def palette(media: str, scheme: str, icon: str, other: str) -> dict[str, Any]:
        toggle = {"icon": f"lucide/{icon}", "name": f"Switch to {other}"}
        return {"media": f"(prefers-color-scheme: {media})", "scheme": scheme, "toggle": toggle}

    return [
        palette("light", "default", "sun", "dark mode"),
        palette("dark", "slate", "moon", "light mode"),
    ]


def _python() -> dict[str, Any]:
    options = {
        "docstring_style": "google",
        "extensions": [str(Path(__file__).with_name("griffe_fences.py"))],
        "filters": ["!^_"],
        "heading_level": 2,
        "inherited_members": False,
        "members_order": "source",
        "separate_signature": True,
        "show_root_heading": True,
        "show_root_full_path": False,
        "show_signature_annotations": True,
        "show_source": False,
        "show_symbol_type_heading": True,
    }
    return {"paths": [str(ROOT / "src")], "options": options}


def every_page() -> Iterator[Path]:
    """Yield the pages of docs/."""
    yield from sorted(DOCS.rglob("*.md"))
