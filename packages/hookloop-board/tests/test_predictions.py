"""Predictions, the worst first."""

import pytest

from board_runs import entry_of, write_run
from hookloop_board.collection import NotFound
from hookloop_board.predictions import predictions_view, sorted_rows


@pytest.fixture
def entry(tmp_path):
    path = write_run(tmp_path / "a")
    (path / "predictions").mkdir()
    rows = "\n".join(f"{n},{n % 3},{0.1 * n}" for n in range(25))
    (path / "predictions" / "test_epoch_1.csv").write_text(f"id,targets,loss\n{rows}\n")
    return entry_of(tmp_path)[1]


def test_the_worst_come_first_page_by_page(entry):
    found = predictions_view(entry)
    assert found["columns"] == ["id", "targets", "loss"] and found["total"] == 25
    assert [row[0] for row in found["rows"]][:3] == ["24", "23", "22"]
    part = predictions_view(entry, found["files"][0]["id"], 20, 10, "id")
    assert [row[0] for row in part["rows"]] == ["20", "21", "22", "23", "24"]
    assert predictions_view(entry, sort="targets", descending=True)["rows"][0][1] == "2"


def test_a_new_file_is_read_again(entry):
    predictions_view(entry)
    (entry.home / "predictions" / "test_epoch_1.csv").write_text("id,loss\n1,2\n")
    assert predictions_view(entry)["total"] == 1


def test_confident_mistakes_come_first():
    columns = ["id", "output_cat", "output_dog", "targets"]
    rows = [
        ["0", "0.9", "0.1", "0"],
        ["1", "0.4", "0.6", "0"],
        ["2", "0.95", "0.05", "1"],
        ["3", "x", "", "9"],
    ]
    found = sorted_rows(columns, rows, None, descending=False)
    assert [row[0] for row in found] == ["2", "1", "0", "3"]
    by_name = [[*row[:3], "dog" if row[3] == "1" else "cat"] for row in rows[:3]]
    assert [row[0] for row in sorted_rows(columns, by_name, None, descending=False)] == [
        "2",
        "1",
        "0",
    ]


def test_wrong_ones_come_first_where_there_are_no_scores():
    rows = [["1", "1"], ["1", "2"], ["3", "3"]]
    assert sorted_rows(["output", "targets"], rows, None, descending=False)[0] == ["1", "2"]
    assert sorted_rows(["a"], [["2"], ["1"]], None, descending=False) == [["2"], ["1"]]


def test_a_target_that_is_no_class_comes_last():
    rows = [["0.5", "1", "2"], ["inf", "1", "2"], ["1e400", "1", "2"], ["0", "1", "2"]]
    found = sorted_rows(["targets", "output_a", "output_b"], rows, None, descending=False)
    assert found == [rows[3], *rows[:3]]


def test_unknown_files_and_columns_are_not_found(entry):
    with pytest.raises(NotFound):
        predictions_view(entry, "../../secret")
    with pytest.raises(NotFound):
        predictions_view(entry, sort="nope")


def test_a_run_without_predictions_has_none(tmp_path):
    write_run(tmp_path / "a")
    assert predictions_view(entry_of(tmp_path)[1])["files"] == []
