"""Curves on any axis."""

import json
import math

import pytest

from board_runs import BEGAN, entry_of, record, write_run
from hookloop_board.collection import Collection
from hookloop_board.curves import BadQuestion, Query, curves_csv, curves_view, parse_query


def curve(path, **options):
    collection, entry = entry_of(path)
    query = Query([entry], ["train/loss"], **options)
    found = curves_view(collection, query)
    return found["curves"][0], found["marks"]


def test_a_curve_over_iterations(tmp_path):
    write_run(tmp_path / "a")
    found, _ = curve(tmp_path)
    assert found["x"] == list(range(10, 101, 10)) and found["total"] == 10 and "min" not in found


def test_epochs_are_counted_in_parts(tmp_path):
    records = [record(i, **{"train/loss": 1.0}) for i in range(5, 51, 5)]
    write_run(tmp_path / "a", records, {"total_iters": 100, "total_epochs": 5})
    found, _ = curve(tmp_path, axis="epoch")
    assert found["x"] == pytest.approx([i / 20 for i in range(5, 51, 5)])


def test_the_first_epoch_is_as_long_as_the_plan_says(tmp_path):
    write_run(tmp_path / "a", [record(5, **{"train/loss": 1.0})])
    assert curve(tmp_path, axis="epoch")[0]["x"] == pytest.approx([0.25])


def test_a_run_without_a_batch_size_is_left_out_of_an_axis_of_samples_and_others_are_not(tmp_path):
    write_run(tmp_path / "a")
    write_run(tmp_path / "b", summary={"batch_size": None})
    collection = Collection([tmp_path])
    one, other = collection.entries().values()
    found = curves_view(collection, Query([one, other], ["train/loss"], "samples"))
    assert [curve["run"] for curve in found["curves"]] == [one.id]
    assert found["curves"][0]["x"][0] == 80
    assert found["left_out"][0]["run"] == other.id
    assert "choose iterations" in found["left_out"][0]["text"]
    # What is written to a file needs no axis, unless it is the part that the page shows.
    whole = "".join(curves_csv(collection, Query([one, other], ["train/loss"], "samples")))
    part = "".join(curves_csv(collection, Query([one, other], ["train/loss"], "samples", 0, 400)))
    assert (whole.count("\n"), part.count("\n")) == (21, 6)


def test_a_file_that_is_written_again_has_another_number_of_its_reading(tmp_path):
    path = write_run(tmp_path / "a") / "metrics.jsonl"
    collection, entry = entry_of(tmp_path)
    query = Query([entry], ["train/loss"])

    def read():
        (found,) = curves_view(collection, query)["curves"]
        return found["reading"], found["count"]

    first = read()
    with path.open("a") as file:
        file.write(json.dumps(record(110, **{"train/loss": 0.5})) + "\n")
    assert read() == (first[0], 11)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:5]) + json.dumps(record(60, **{"train/loss": 0.7})) + "\n")
    again = read()
    assert again[0] != first[0] and again[1] == 6


def test_a_pause_does_not_count_as_training(tmp_path):
    before = [record(i, **{"train/loss": 1.0}) for i in (10, 20)]
    after = [{**record(i, **{"train/loss": 1.0}), "time": BEGAN + 5000 + i} for i in (30, 40)]
    path = write_run(tmp_path / "a", [*before, *after])
    starts = [
        {"iter": 0, "time": BEGAN},
        {"iter": 20, "time": BEGAN + 5020, "host": "other"},
    ]
    (path / "environment.json").write_text(json.dumps({"starts": starts}))
    found, marks = curve(tmp_path, axis="relative")
    assert found["x"] == pytest.approx([10, 20, 30, 40])
    assert marks == [
        {"run": marks[0]["run"], "x": 20.0, "kind": "resume", "text": "resumed on other"}
    ]
    assert curve(tmp_path, axis="time")[0]["x"][-1] == BEGAN + 5040


def test_changes_are_marked(tmp_path):
    change = {"iter": 50, "key": "optimizer.lr", "old": 0.1, "new": 0.01, "how": "asked"}
    write_run(tmp_path / "a", summary={"changes": [change, "odd", {"iter": "x"}]})
    (mark,) = curve(tmp_path)[1]
    assert (mark["x"], mark["kind"], mark["text"]) == (50, "change", "optimizer.lr: 0.1 -> 0.01")


def test_many_points_are_sampled_and_nan_is_a_gap(tmp_path):
    records = [record(i, **{"train/loss": float(i % 7)}) for i in range(5000)]
    records[100]["train/loss"] = "NaN"
    write_run(tmp_path / "a", records)
    found, _ = curve(tmp_path, points=50)
    assert len(found["x"]) == 50 and found["total"] == 5000 and max(found["max"]) == 6.0
    assert found["nonfinite"][0][0] == 100.0 and math.isnan(found["nonfinite"][0][1])
    part, _ = curve(tmp_path, points=50, begin=95, end=105)
    assert part["x"][6] == 100 and part["y"][6] is None and part["total"] == 11


def test_a_file_without_times_has_no_axis_of_time(tmp_path):
    write_run(tmp_path / "a", [{"iter": 1, "train/loss": 1.0}])
    assert curve(tmp_path, axis="time")[0]["x"] == []
    assert curve(tmp_path, axis="epoch")[0]["total"] == 1


def test_as_csv_no_cell_is_a_formula(tmp_path):
    write_run(tmp_path / "=1+1", [record(1, **{"@x": 1.5, "train/loss": 1.0})])
    collection, entry = entry_of(tmp_path)
    text = "".join(curves_csv(collection, Query([entry], ["@x", "none"])))
    assert text.splitlines()[0] == "run,metric,iter,epoch,time,value"
    assert text.splitlines()[1].startswith("'=1+1,'@x,1,0,2026-01-31T09:00:01+00:00,1.5")


def test_too_many_curves_are_rejected(tmp_path):
    write_run(tmp_path / "a")
    collection, entry = entry_of(tmp_path)
    with pytest.raises(BadQuestion, match="more than"):
        curves_view(collection, Query([entry], [str(n) for n in range(3000)]))


def test_questions_are_read(tmp_path):
    write_run(tmp_path / "a")
    collection, entry = entry_of(tmp_path)
    query = parse_query(
        collection, {"run": [entry.id], "metric": ["a", "a"], "from": ["3"], "axis": ["epoch"]}
    )
    assert (query.metrics, query.begin, query.end, query.axis) == (["a"], 3.0, math.inf, "epoch")


def test_a_way_back_is_marked_where_it_led_to(tmp_path):
    change = {"iter": 40, "key": "iter", "old": 70, "new": 40, "how": "rewound"}
    write_run(tmp_path / "a", summary={"changes": [change]})
    _, (mark,) = curve(tmp_path)
    assert (mark["x"], mark["kind"]) == (40.0, "rewind")
    assert mark["text"] == "went back from iteration 70 to 40"


def test_smoothing_is_asked_for_by_its_weight(tmp_path):
    write_run(tmp_path / "a")
    collection, entry = entry_of(tmp_path)
    asked = {"run": [entry.id], "metric": ["train/loss"], "smooth": ["0.5"]}
    (found,) = curves_view(collection, parse_query(collection, asked))["curves"]
    assert found["smooth"][0] == found["y"][0] and found["smooth"][1] > found["y"][1]
    for wrong in ("1", "-0.1", "nan", "much"):
        with pytest.raises(BadQuestion, match="smooth"):
            parse_query(collection, {**asked, "smooth": [wrong]})


def test_a_curve_of_a_fork_begins_with_that_of_its_parent(tmp_path):
    records = [record(i, **{"train/loss": 1 / i}) for i in range(10, 101, 10)]
    write_run(tmp_path / "a", records, {"run_id": "aa"})
    parent = {"path": "../a/iter_40.pth", "run_id": "aa", "iter": 40, "changed": ["optimizer.lr"]}
    own = [record(i, **{"train/loss": 2.0}) for i in (50, 60)]
    write_run(tmp_path / "b", own, {"run_id": "bb", "parent": parent})
    collection = Collection([tmp_path])
    fork = next(one for one in collection.entries().values() if one.name == "b")
    found = curves_view(collection, Query([fork], ["train/loss"]))
    assert found["curves"][0]["x"] == [10, 20, 30, 40, 50, 60]
    assert found["curves"][0]["y"][3:] == [1 / 40, 2.0, 2.0]
    assert [(mark["x"], mark["text"]) for mark in found["marks"]] == [
        (40, "left its parent with optimizer.lr changed")
    ]
