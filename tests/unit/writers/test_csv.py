import pytest
from tests.readback import csv_rows

from hookloop.writers.csv import Csv
from hookloop.writers.records import Scalars


def write(path, *rows, **options):
    writer = Csv(path, **options)
    for step, values in rows:
        writer.write([Scalars(values, step, epoch=step)])
    writer.close()


def test_a_new_metric_gets_a_column_and_earlier_rows_an_empty_field(tmp_path):
    path = tmp_path / "m.csv"
    write(path, (1, {"train/loss": 0.5}), (2, {"train/loss": 0.4, "val/loss": 0.6}))
    rows = csv_rows(path)
    assert list(rows[0]) == ["time", "phase", "iter", "epoch", "train/loss", "val/loss"]
    assert [row["val/loss"] for row in rows] == ["", "0.6"]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_names_with_special_characters_are_quoted(tmp_path, delimiter):
    path = tmp_path / "m.csv"
    name = f'val/a "b"{delimiter}\nc\u2028d'
    write(path, (1, {name: 0.5}), (2, {name: 0.25, "x": 1.0}), delimiter=delimiter)
    assert [row[name] for row in csv_rows(path, delimiter)] == ["0.5", "0.25"]


def test_a_missing_value_is_written_as_configured(tmp_path):
    path = tmp_path / "m.csv"
    write(path, (1, {"a": 1.0}), (2, {"b": 2.0}), missing="NA")
    assert [(row["a"], row["b"]) for row in csv_rows(path)] == [("1.0", "NA"), ("NA", "2.0")]


def test_an_existing_file_is_continued_under_one_header(tmp_path):
    path = tmp_path / "m.csv"
    write(path, (1, {"a": 1.0}))
    write(path, (2, {"b": 2.0}))
    assert path.read_text(encoding="utf-8").count("time,phase") == 1
    assert [(row["a"], row["b"]) for row in csv_rows(path)] == [("1.0", ""), ("", "2.0")]


def test_rows_after_the_checkpoint_are_dropped(tmp_path):
    path = tmp_path / "m.csv"
    write(path, *((step, {"a": float(step)}) for step in (1, 2, 3)))
    writer = Csv(path)
    writer.keep_first(1)
    writer.write([Scalars({"a": 20.0}, 2)])
    writer.close()
    assert [(row["iter"], row["a"]) for row in csv_rows(path)] == [("1", "1.0"), ("2", "20.0")]


def test_a_row_cut_off_by_a_kill_is_removed(tmp_path):
    path = tmp_path / "m.csv"
    write(path, (1, {"a": 1.0}), (2, {"a": 2.0}))
    path.write_text(path.read_text(encoding="utf-8")[:-5], encoding="utf-8")
    write(path, (3, {"a": 3.0}))
    assert [row["iter"] for row in csv_rows(path)] == ["1", "3"]
