"""Pictures, texts, tables, histograms and confusion matrices of a run."""

import json

import numpy as np
import pytest

from board_runs import entry_of, write_run
from hookloop.writers.media import MediaFiles
from hookloop.writers.records import Histogram, Image, Table, Text
from hookloop_board import media as module
from hookloop_board.collection import NotFound
from hookloop_board.files import stamp_of
from hookloop_board.media import media_view, medium, read_image, read_medium


@pytest.fixture
def run(tmp_path):
    path = write_run(tmp_path / "runs" / "a")
    confusion = path / "confusion" / "val_epoch_1.csv"
    confusion.parent.mkdir()
    table = Table(
        "val/confusion", ["true", "cat", "dog"], [["cat", 3, 1], ["dog", 0, 4]], 20, confusion
    )
    confusion.write_text(table.to_csv())
    MediaFiles(path).write(
        [
            Image("val/sample", np.zeros((2, 2)), 10),
            Image("val/sample", np.ones((2, 2)), 20),
            Text("note", "<script>alert(1)</script>", 20),
            Table("scores", ["a", "b"], [[1, "x"]], 20),
            Histogram("weights", np.arange(100.0), 20),
            table,
        ]
    )
    return path


def shown(run, kind):
    _, entry = entry_of(run.parent)
    (one,) = [one for one in media_view(entry)["media"] if one["kind"] == kind]
    return entry, one


def test_what_a_run_wrote_is_found_by_name_and_step(run):
    _, found = shown(run, "image")
    assert found["name"] == "val/sample" and [one["iter"] for one in found["steps"]] == [10, 20]
    for kind in ("text", "table", "histogram", "confusion"):
        assert len(shown(run, kind)[1]["steps"]) == 1


def test_each_kind_is_read(run):
    def content(kind):
        entry, found = shown(run, kind)
        return read_medium(entry, medium(entry, found["steps"][-1]["id"]))

    assert content("text") == {"text": "<script>alert(1)</script>"}
    assert content("table") == {"columns": ["a", "b"], "rows": [["1", "x"]], "total_rows": 1}
    assert content("confusion") == {"labels": ["cat", "dog"], "matrix": [[3, 1], [0, 4]]}
    histogram = content("histogram")
    assert (
        len(histogram["edges"]) == len(histogram["counts"]) + 1 and sum(histogram["counts"]) == 100
    )
    entry, found = shown(run, "image")
    data, kind = read_image(entry, medium(entry, found["steps"][0]["id"]))
    assert kind == "image/png" and data.startswith(b"\x89PNG")


def test_one_picture_of_many_is_found_without_a_look_at_the_others(run, monkeypatch):
    entry, found = shown(run, "image")
    looked = []
    monkeypatch.setattr(module, "stamp_of", lambda path: looked.append(path) or stamp_of(path))
    assert medium(entry, found["steps"][0]["id"]).iter == 10
    assert len(looked) == 1  # The index.


def test_a_run_without_an_index_is_searched(run):
    (run / "media.jsonl").unlink()
    (run / "visual").mkdir()
    (run / "visual" / "val_epoch_3_batch_1.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    _, entry = entry_of(run.parent)
    found = {(one["kind"], one["name"]) for one in media_view(entry)["media"]}
    assert found == {
        ("image", "val/sample"), ("image", "val_batch_1"), ("text", "note"), ("table", "scores"),
        ("histogram", "weights"), ("confusion", "val"),
    }  # fmt: skip


def test_a_repeated_iteration_replaces_what_it_showed(run):
    MediaFiles(run).write([Text("note", "again", 20)])
    entry, found = shown(run, "text")
    assert read_medium(entry, medium(entry, found["steps"][0]["id"])) == {"text": "again"}


@pytest.mark.parametrize(
    "file", ["../../secret.txt", "/etc/passwd", "link.txt", "linked/secret.txt", "gone"]
)
def test_an_index_that_leads_elsewhere_shows_nothing(run, tmp_path, file):
    (tmp_path / "secret.txt").write_text("SECRET")
    (run / "link.txt").symlink_to(tmp_path / "secret.txt")
    (run / "linked").symlink_to(tmp_path)
    (run / "media.jsonl").write_text(
        "".join(f"{json.dumps(one)}\n" for one in [
            {"kind": "text", "name": "x", "iter": 1, "file": file},
            {"kind": "text", "name": "ok", "iter": 1, "file": "texts/note/00000020.md"},
            {"kind": "script", "name": "x", "iter": 1, "file": "summary.json"},
            {"kind": "text", "name": 3, "iter": "x", "file": []}, 7,
        ])
    )  # fmt: skip
    _, entry = entry_of(run.parent)
    for one in media_view(entry)["media"]:
        for step in one["steps"]:
            try:
                found = read_medium(entry, medium(entry, step["id"]))
            except OSError:
                continue
            assert "SECRET" not in json.dumps(found) and one["name"] == "ok"


def test_what_is_no_picture_is_not_sent_as_one(run):
    entry, found = shown(run, "image")
    one = medium(entry, found["steps"][0]["id"])
    (run / one.file).write_text("<svg onload=alert(1)>")
    with pytest.raises(NotFound, match="not a PNG"):
        read_image(entry, one)
    with pytest.raises(NotFound):
        medium(entry, "../summary.json")
