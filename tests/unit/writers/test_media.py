import json

from tests.readback import png

from hookloop.writers.media import MediaFiles
from hookloop.writers.records import Histogram, Image, Scalars, Table, Text


def test_each_record_becomes_a_file_named_by_its_step(tmp_path):
    writer = MediaFiles(tmp_path)
    writer.write(
        [
            Image("val/a sample", [[0.0, 1.0]], 12),
            Text("note", "hello", 12),
            Table("scores", ["a"], [[1]], 12),
            Scalars({"loss": 1.0}, 12),
        ]
    )
    assert png(tmp_path / "images/val/a_sample/00000012.png").tolist() == [[0, 255]]
    assert (tmp_path / "texts/note/00000012.md").read_text(encoding="utf-8") == "hello"
    assert (tmp_path / "tables/scores/00000012.csv").read_text(encoding="utf-8") == "a\n1\n"
    assert {path.name for path in tmp_path.iterdir()} == {
        "images",
        "texts",
        "tables",
        "media.jsonl",
    }


def test_a_record_that_a_hook_saved_itself_is_only_listed(tmp_path):
    home = tmp_path / "run"
    home.mkdir()
    for folder in (home, tmp_path):
        MediaFiles(home).write([Image("x", [[0.0]], 1, file=folder / "own.png")])
    assert [path.name for path in home.iterdir()] == ["media.jsonl"]
    assert listed(home) == [{"kind": "image", "name": "x", "iter": 1, "file": "own.png"}]


def test_a_histogram_is_edges_and_counts(tmp_path):
    values = [0.0, 0.5, 1.0, float("nan")]
    MediaFiles(tmp_path).write([Histogram("w/a", values, 3), Histogram("none", [], 3)])
    found = json.loads((tmp_path / "histograms/w/a/00000003.json").read_text())
    assert len(found["edges"]) == len(found["counts"]) + 1 and sum(found["counts"]) == 3
    assert (found["edges"][0], found["edges"][-1]) == (0.0, 1.0)
    assert [one["kind"] for one in listed(tmp_path)] == ["histogram"]


def test_a_confusion_matrix_is_listed_as_one(tmp_path):
    MediaFiles(tmp_path).write([Table("val/confusion", ["true", "a"], [["a", 1]], 1)])
    assert [one["kind"] for one in listed(tmp_path)] == ["confusion"]


def listed(directory):
    lines = (directory / "media.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_a_name_cannot_leave_the_directory(tmp_path):
    MediaFiles(tmp_path / "run").write([Text("../../outside", "x", 1)])
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
