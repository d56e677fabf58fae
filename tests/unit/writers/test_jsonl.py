import json
import shutil

import pytest

from hookloop.writers.jsonl import JsonLines, drop_after, keep_first
from hookloop.writers.records import Scalars, Text


def test_a_line_has_the_iteration_and_the_numbers(tmp_path):
    writer = JsonLines(tmp_path / "m.jsonl")
    writer.write([Text("note", "not a number"), Scalars({"train/loss": float("nan")}, 3, epoch=1)])
    line = json.loads((tmp_path / "m.jsonl").read_text(encoding="utf-8"))  # Before it is closed.
    writer.close()
    assert line.pop("time") > 0
    assert line == {"phase": "train", "span": "iter", "iter": 3, "epoch": 1, "train/loss": "NaN"}


def test_drop_after_removes_later_lines_and_half_a_line(tmp_path):
    path = tmp_path / "m.jsonl"
    path.write_text('{"iter": 1}\n{"iter": 2}\n{"iter": 3}\n{"it', encoding="utf-8")
    drop_after(path, 2)
    assert path.read_text(encoding="utf-8") == '{"iter": 1}\n{"iter": 2}\n'
    drop_after(tmp_path / "absent.jsonl", 2)


def test_keep_first_keeps_the_lines_of_the_checkpoint_and_of_tests(tmp_path):
    path = tmp_path / "m.jsonl"
    path.write_text('{"iter": 1}\n{"iter": 2}\n{"iter": 2, "phase": "test"}\n{"iter": 2}\n{"it')
    keep_first(path, 1)
    assert path.read_text() == '{"iter": 1}\n{"iter": 2, "phase": "test"}\n'
    keep_first(tmp_path / "absent.jsonl", 1)
    writer = JsonLines(path)
    writer.close()
    assert writer.lines == 2


def test_no_line_is_lost_while_the_disk_is_full(tmp_path, caplog):
    writer = JsonLines(tmp_path / "metrics.jsonl")
    disk, writer._file = writer._file, open("/dev/full", "ab", buffering=0)  # noqa: SIM115
    for step in (1, 2):
        writer.write([Scalars({"train/loss": 0.5}, step, 0, "train", "iter")])
    assert [
        record.message for record in caplog.records if "cannot be written" in record.message
    ] == [
        f"'{tmp_path}/metrics.jsonl' cannot be written: [Errno 28] No space left on device. "
        "The next numbers will try again."
    ]
    assert writer.lines == 0
    writer._file.close()
    writer._file = disk
    writer.write([Scalars({"train/loss": 0.5}, 3, 0, "train", "iter")])
    assert writer.lines == 3
    writer.close()
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["iter"] for line in lines] == [1, 2, 3]


def test_closing_raises_if_lines_are_not_written(tmp_path):
    writer = JsonLines(tmp_path / "metrics.jsonl")
    writer._file.close()
    writer._file = open("/dev/full", "ab", buffering=0)  # noqa: SIM115
    writer.write([Scalars({"train/loss": 0.5}, 1, 0, "train", "iter")])
    with pytest.raises(OSError, match="No space left"):
        writer.close()


def test_a_deleted_file_is_restored_with_all_of_its_lines(tmp_path, caplog):
    path = tmp_path / "run" / "metrics.jsonl"
    path.parent.mkdir()
    writer = JsonLines(path)
    for step in range(6):
        if step == 3:
            shutil.rmtree(path.parent)
        writer.write([Scalars({"loss": 1.0}, step, 0, "train", "iter")])
    writer.close()
    assert [json.loads(line)["iter"] for line in path.read_text().splitlines()] == list(range(6))
    assert writer.lines == 6
    assert caplog.text.count("was deleted or moved during the run") == 1


def test_a_file_that_replaced_it_is_continued(tmp_path):
    path = tmp_path / "metrics.jsonl"
    writer = JsonLines(path)
    writer.write([Scalars({"loss": 1.0}, 1, 0, "train", "iter")])
    path.unlink()
    path.write_text("{}\n")
    writer.write([Scalars({"loss": 1.0}, 2, 0, "train", "iter")])
    writer.close()
    assert [json.loads(line).get("iter") for line in path.read_text().splitlines()] == [None, 2]
