"""Check a built site: links and anchors lead somewhere, nothing comes from another host."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADING = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src"}
LOADED_LINKS = {"stylesheet", "preload", "preconnect", "dns-prefetch", "icon", "manifest"}
STYLE_URL = re.compile(r"url\(\s*['\"]?(?:https?:)?//|@import\s+['\"](?:https?:)?//")


class Page(HTMLParser):
    """What a page has: anchors, links to follow, and files that a browser loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag brings."""
        given = {name: value or "" for name, value in attrs}
        self.anchors.update(given[name] for name in ("id", "name") if name in given)
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "link" and LOADED_LINKS & set(given.get("rel", "").split()):
            self.loaded.append(given["href"])
        if tag in LOADING and given.get(LOADING[tag]):
            self.loaded.append(given[LOADING[tag]])


def problems(site: Path) -> Iterator[str]:
    """Yield what is wrong with a built site."""
    pages = {
        path.resolve(): Page(path.read_text(encoding="utf-8"))
        for path in sorted(site.rglob("*.html"))
    }
    for path, page in pages.items():
        where = path.relative_to(site.resolve())
        if where.name == "404.html":  # Its links begin at the root of a host.
            continue
        for link in page.links:
            if not _is_elsewhere(link) and not _leads_somewhere(link, path, pages):
                yield f"{where}: the link '{link}' leads nowhere"
        for loaded in page.loaded:
            if _is_elsewhere(loaded):
                yield f"{where}: '{loaded}' is loaded from another host"
            elif not _leads_somewhere(loaded, path, pages):
                yield f"{where}: '{loaded}' is not there"
    for style in sorted(site.rglob("*.css")):
        if STYLE_URL.search(style.read_text(encoding="utf-8")):
            yield f"{style.relative_to(site)}: loads something from another host"


def _is_elsewhere(link: str) -> bool:
    parts = urlsplit(link)
    return bool(parts.netloc) or parts.scheme not in ("", "file")


def _leads_somewhere(link: str, page: Path, pages: dict[Path, Page]) -> bool:
    parts = urlsplit(link)
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if target.is_dir():
        target /= "index.html"
    if not target.exists():
        return False
    if not parts.fragment or target not in pages:
        return True
    return unquote(parts.fragment) in pages[target].anchors
