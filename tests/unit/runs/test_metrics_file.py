"""The records of a run are read whole, from the end, and in spite of damage if that is wanted."""

import json
from pathlib import Path

import pytest

from hookloop.runs.metrics_file import LONGEST_LINE, TAIL, last_record, records


def test_a_damaged_line_is_left_out_or_an_error(tmp_path: Path) -> None:
    file = tmp_path / "metrics.jsonl"
    assert list(records(file, is_lenient=False)) == []
    file.write_text('{"iter": 1, "loss": "Infinity"}\n\n[2]\n{"iter": 3}\n{"iter": 4')
    assert list(records(file, is_lenient=True)) == [{"iter": 1, "loss": float("inf")}, {"iter": 3}]
    with pytest.raises(ValueError, match="'metrics.jsonl'"):
        list(records(file, is_lenient=False))


def test_a_line_that_is_still_being_written_is_no_damage(tmp_path: Path) -> None:
    file = tmp_path / "metrics.jsonl"
    file.write_text('{"iter": 1}\n{"iter": 2')
    assert list(records(file, is_lenient=False)) == [{"iter": 1}]
    file.write_text('{"iter": 1}\n' + "x" * (LONGEST_LINE + 1))
    with pytest.raises(ValueError, match="is not a record"):
        list(records(file, is_lenient=False))


@pytest.mark.parametrize(
    ("text", "record"),
    [
        ("", {}),
        ('{"iter": 1}\n{"iter": 2}\n', {"iter": 2}),
        ('{"iter": 1}\n{"iter": 2}', {"iter": 1}),
        ('{"iter": 1}\ndamaged\n[3]\n', {"iter": 1}),
        ("damaged\n", {}),
    ],
)
def test_the_last_record_is_the_last_complete_one(
    tmp_path: Path, text: str, record: dict[str, int]
) -> None:
    (tmp_path / "metrics.jsonl").write_text(text)
    assert last_record(tmp_path / "metrics.jsonl") == record


def test_only_the_end_of_a_large_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "metrics.jsonl"
    lines = [json.dumps({"iter": number}) for number in range(TAIL // 8)]
    file.write_text("\n".join(lines) + "\n")
    assert file.stat().st_size > TAIL
    assert last_record(file) == {"iter": TAIL // 8 - 1}
    file.write_text('{"iter": 1}\n' + "x" * (2 * TAIL) + "\n")
    assert last_record(file) == {}
