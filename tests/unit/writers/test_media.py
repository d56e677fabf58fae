from tests.readback import png

from hookloop.writers.media import MediaFiles
from hookloop.writers.records import Image, Scalars, Table, Text


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
    assert {path.name for path in tmp_path.iterdir()} == {"images", "texts", "tables"}


def test_a_record_that_a_hook_saved_itself_is_skipped(tmp_path):
    MediaFiles(tmp_path).write([Image("x", [[0.0]], 1, file=tmp_path / "own.png")])
    assert list(tmp_path.iterdir()) == []


def test_a_name_cannot_leave_the_directory(tmp_path):
    MediaFiles(tmp_path / "run").write([Text("../../outside", "x", 1)])
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
