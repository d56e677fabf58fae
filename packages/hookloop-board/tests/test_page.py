"""Find the built page, or build it."""

import gzip
import os
import stat

import pytest

from hookloop.errors import HookloopError
from hookloop_board.page import built_page, page_files

NPM = """#!/bin/sh
echo "npm $*" >> calls
[ "$1" = run ] && mkdir -p ../page && echo page > ../page/index.html
exit ${FAILS:-0}
"""


@pytest.fixture
def sources(tmp_path, monkeypatch):
    """A checkout, and a Node that only pretends."""
    (tmp_path / "board").mkdir()
    (tmp_path / "board" / "package.json").touch()
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("npm", "node"):
        (tools / name).write_text(NPM)
        (tools / name).chmod(0o755 | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    return tmp_path / "board"


def test_a_page_that_is_there_needs_no_node(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    (tmp_path / "index.html").touch()
    assert built_page(tmp_path, tmp_path / "nothing") == tmp_path


def test_a_checkout_builds_it_once(sources, tmp_path):
    page = tmp_path / "page"
    for _ in range(2):
        assert built_page(page, sources) == page
    calls = (sources / "calls").read_text().splitlines()
    assert calls == ["npm ci --no-audit --no-fund", "npm run build"]


def test_without_node_it_is_said_what_to_install(sources, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(HookloopError, match="Install Node 20"):
        built_page(tmp_path / "page", sources)


def test_a_build_that_fails_shows_why(sources, tmp_path, monkeypatch):
    monkeypatch.setenv("FAILS", "3")
    with pytest.raises(HookloopError, match="npm ci .* failed"):
        built_page(tmp_path / "page", sources)


def test_an_installation_without_a_page_is_reported(tmp_path):
    with pytest.raises(HookloopError, match="missing in this installation"):
        built_page(tmp_path / "page", tmp_path / "nothing")


def test_files_with_a_hash_in_their_name_are_kept_by_the_browser(tmp_path):
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<title>board</title>")
    (tmp_path / "assets" / "a-1.js").write_text("1")
    found = page_files(tmp_path)
    assert set(found) == {"index.html", "assets/a-1.js"}
    data, small, headers = found["assets/a-1.js"]
    assert gzip.decompress(small) == data == b"1"
    assert headers["content-type"].startswith("text/javascript")
    assert "immutable" in headers["cache-control"]
    assert "cache-control" not in found["index.html"][2]  # Every answer has no-store.
