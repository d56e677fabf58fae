import json

from hookloop.runs.same_metrics import compare_metrics


def write(folder, *records):
    folder.mkdir()
    lines = [json.dumps({"phase": "train", "span": "iter", **one}) for one in records]
    (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def test_equal_numbers_at_equal_iterations(tmp_path):
    one = write(
        tmp_path / "a",
        {"iter": 1, "time": 1.0, "train/loss": 0.1, "train/iter_time": 0.3},
        {"iter": 2, "train/loss": "NaN"},
        {"iter": 3, "train/loss": 0.5},
    )
    other = write(
        tmp_path / "b",
        {"iter": 1, "time": 2.0, "train/loss": 0.1, "train/iter_time": 0.9},
        {"iter": 2, "train/loss": "NaN"},
    )
    found = compare_metrics(one, other)
    assert (found.numbers, found.last_iter, found.is_equal) == (2, 2, True)


def test_the_first_difference_is_that_of_the_earliest_iteration(tmp_path):
    one = write(tmp_path / "a", {"iter": 9, "a": 1.0}, {"iter": 10, "a": 1.0, "b": 1.0})
    other = write(tmp_path / "b", {"iter": 9, "a": 1.1}, {"iter": 10, "a": 1.2, "b": 1.0})
    found = compare_metrics(one, other)
    assert not found.is_equal
    assert str(found.differences[0]) == "a at iteration 9: 1.0 and 1.1"
    assert (len(found.differences), found.numbers) == (2, 3)


def test_nothing_in_common_is_not_equal(tmp_path):
    one = write(tmp_path / "a", {"iter": 1, "a": 1.0})
    other = write(tmp_path / "b", {"iter": 2, "a": 1.0})
    assert not compare_metrics(one, other).is_equal


def test_a_mean_of_an_epoch_is_not_one_of_an_interval(tmp_path):
    one = write(tmp_path / "a", {"iter": 1, "loss": 1.0})
    other = write(tmp_path / "b", {"iter": 1, "loss": 2.0, "span": "epoch"})
    assert compare_metrics(one, other).numbers == 0
