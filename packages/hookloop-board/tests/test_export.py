"""One file that opens without a server."""

import base64
import hashlib
import json
import re

import pytest

from board_runs import record, write_run
from hookloop.errors import HookloopError
from hookloop_board.export import export_page

HTML = """<!doctype html><html><head><meta charset="utf-8"><title>x</title>
<script type="module" crossorigin src="./assets/a.js"></script>
<link rel="stylesheet" crossorigin href="./assets/a.css">
</head><body><div id="app"></div></body></html>"""


@pytest.fixture
def page(tmp_path):
    page = tmp_path / "page"
    (page / "assets").mkdir(parents=True)
    (page / "index.html").write_text(HTML)
    (page / "assets" / "a.js").write_text('const s = "</script><!--"; const t = /\\d\\1/;')
    (page / "assets" / "a.css").write_text("body { color: red }")
    return page


def data_of(text):
    (found,) = re.findall(
        r'<script type="application/json" id="board-data">(.*?)</script>', text, re.S
    )
    return json.loads(found)


def test_a_file_has_the_answers_of_all_views(tmp_path, page):
    write_run(tmp_path / "runs" / "a")
    count, size = export_page([tmp_path / "runs"], page, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert (count, size) == (1, len(text.encode()))
    answers = data_of(text)["answers"]
    run = answers["/api/runs"]["runs"][0]["id"]
    assert answers["/api/runs"]["can_change"] is False
    for view in (
        "",
        "/config",
        "/environment",
        "/log",
        "/hooks",
        "/checkpoints",
        "/media",
        "/predictions",
    ):
        assert f"/api/runs/{run}{view}" in answers
    for axis in ("iter", "epoch", "time"):
        curve = answers[f"/api/curves?run={run}&metric=train/loss&axis={axis}"]
        assert len(curve["curves"][0]["x"]) == 10


def test_nothing_is_loaded_and_only_its_own_script_runs(tmp_path, page):
    write_run(tmp_path / "runs" / "a")
    export_page([tmp_path / "runs"], page, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert "src=" not in text and "href=" not in text
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
    for tag in ('script type="module"', "style"):
        (inner,) = re.findall(rf"<{tag}>(.*?)</{tag.split()[0]}>", text, re.S)
        digest = base64.b64encode(hashlib.sha256(inner.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert text.index("Content-Security-Policy") < text.index("<style>")


def test_whatever_runs_wrote_stays_data(tmp_path, page):
    evil = "</script><script>alert(1)</script><!--\u2028"
    path = write_run(tmp_path / "runs" / "a", [record(1, **{evil: 1.0})], {"reason": evil})
    (path / "run.log").write_text(evil)
    export_page([tmp_path / "runs"], page, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert "alert(1)</script>" not in text and "\u2028" not in text
    answers = data_of(text)["answers"]
    run = answers["/api/runs"]["runs"][0]["id"]
    assert answers[f"/api/runs/{run}/log"]["text"] == evil


def test_media_fit_into_a_limit(tmp_path, page, monkeypatch):
    import numpy as np

    from hookloop.writers.media import MediaFiles
    from hookloop.writers.records import Image, Text

    path = write_run(tmp_path / "runs" / "a")
    noise = np.random.default_rng(0).random((50, 50))
    MediaFiles(path).write([Image("x", noise, step) for step in range(5)] + [Text("t", "hello", 1)])
    monkeypatch.setattr("hookloop_board.export.MOST_MEDIA", 8000)
    export_page([tmp_path / "runs"], page, tmp_path / "page.html")
    answers = data_of((tmp_path / "page.html").read_text())["answers"]
    kept = [value for key, value in answers.items() if "/media/" in key]
    pictures = [one for one in kept if isinstance(one, str)]
    assert 1 <= len(pictures) < 5 and pictures[0].startswith("data:image/png;base64,")


def test_nothing_to_export_is_an_error(tmp_path, page):
    (tmp_path / "runs").mkdir()
    with pytest.raises(HookloopError, match="no run"):
        export_page([tmp_path / "runs"], page, tmp_path / "x.html")
    write_run(tmp_path / "runs" / "a")
    with pytest.raises(HookloopError, match="no directory"):
        export_page([tmp_path / "runs"], page, tmp_path / "nowhere" / "x.html")
