"""The site: what it is made of, that it leads to every page, and that its links are right.

`make docs` builds it, in an environment of its own, and checks what was built. This needs neither.
"""

import re
import sys
import unicodedata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import make_site  # noqa: E402

from site_parts import checking, collecting  # noqa: E402
from site_parts.arranging import every_page, navigation, settings  # noqa: E402

LINKED = [
    *sorted(ROOT.glob("*.md")),
    *(
        path
        for folder in ("docs", "examples", "packages")
        for path in sorted((ROOT / folder).rglob("*.md"))
        if "node_modules" not in path.parts
    ),
]


def headings(page):
    whole = re.sub(r"^ *```.*?^ *```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    return re.findall(r"^#+ (.+?)\s*$", whole, flags=re.MULTILINE)


def on_a_code_host(heading):
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def on_the_site(heading):
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", text).strip().lower())


@pytest.mark.parametrize("page", LINKED, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_headings_on_a_code_host_and_on_the_site(page):
    for link, target in collecting.links(page.read_text(encoding="utf-8"), page):
        anchor = link.partition("#")[2]
        aimed = target or page
        if not anchor or "://" in link or aimed.suffix != ".md":
            continue
        for slug in (on_a_code_host, on_the_site):
            assert anchor in map(slug, headings(aimed)), f"{link}, {slug.__name__}"


def test_the_navigation_leads_to_every_page():
    _, named = navigation(settings()["nav"])
    assert set(every_page()) <= set(named)
    assert len(named) == len(set(named))


def test_the_pages_are_collected_with_what_they_link(tmp_path):
    count = make_site.stage(tmp_path)
    pages = tmp_path / "pages"
    assert count == sum(path.is_file() for path in pages.rglob("*"))
    shown = (pages / "project" / "src" / "hookloop" / "update" / "update.py.md").read_text()
    assert shown.startswith("# src/hookloop/update/update.py\n\n````python\n")
    assert "](project/examples/README.md)" in (pages / "index.md").read_text()
    assert "](../docs/" not in (pages / "project" / "README.md").read_text()


def test_a_second_time_writes_only_what_has_changed(tmp_path):
    make_site.stage(tmp_path)
    page = tmp_path / "pages" / "index.md"
    before = page.stat().st_mtime_ns
    make_site.stage(tmp_path)
    assert page.stat().st_mtime_ns == before


def test_a_link_to_nothing_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(collecting, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("[there](nowhere.md) and `[code](is not a link)`\n")
    with pytest.raises(collecting.BrokenLinkError, match=r"page\.md.*nowhere\.md"):
        list(collecting.links(page.read_text(), page))


def test_a_built_site_is_checked(tmp_path):
    (tmp_path / "a.html").write_text(
        '<a href="b.html#one">fine</a><a href="b.html#two">wrong</a><a href="c.html">gone</a>'
        '<a href="https://pytorch.org/">a link elsewhere is no request</a>'
        '<script src="https://example.org/x.js"></script><img src="missing.png">'
    )
    (tmp_path / "b.html").write_text('<h2 id="one">One</h2>')
    (tmp_path / "style.css").write_text("@font-face { src: url(https://example.org/font.woff) }")
    assert list(checking.problems(tmp_path)) == [
        "a.html: the link 'b.html#two' leads nowhere",
        "a.html: the link 'c.html' leads nowhere",
        "a.html: 'https://example.org/x.js' is loaded from another host",
        "a.html: 'missing.png' is not there",
        "style.css: loads something from another host",
    ]
