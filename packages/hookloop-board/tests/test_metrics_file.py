"""Follow the metrics of a run while they are written, whatever the file holds."""

import json
import os
import resource

import pytest

from board_runs import record
from hookloop_board import metrics_file
from hookloop_board.metrics_file import MetricsFile, names_in


def lines(*records):
    return "".join(f"{json.dumps(one)}\n" for one in records)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "metrics.jsonl"


def test_only_what_is_new_is_read(path, monkeypatch):
    path.write_text(lines(record(1, loss=1.0), record(2, loss=0.5)))
    file = MetricsFile(path)
    assert file.update() and not file.update()
    parsed = []
    original = metrics_file.read_columns
    monkeypatch.setattr(
        metrics_file, "read_columns", lambda data: parsed.append(data) or original(data)
    )
    with path.open("a") as more:
        more.write(lines(record(3, loss=0.25)))
    assert file.update() and [one.count(b"\n") for one in parsed] == [1]
    assert file.points("loss").values.tolist() == [1.0, 0.5, 0.25]
    assert file.points("loss").iters.tolist() == [1, 2, 3]
    assert file.points("other") is None


def test_a_torn_line_waits_for_its_end(path):
    path.write_text(lines(record(1, loss=1.0)) + '{"iter": 2, "lo')
    file = MetricsFile(path)
    file.update()
    assert file.points("loss").values.tolist() == [1.0]
    with path.open("a") as more:
        more.write('ss": 0.5}\n')
    assert file.update()
    assert file.points("loss").values.tolist() == [1.0, 0.5]


@pytest.mark.parametrize("replaces", [True, False], ids=["replaced", "shortened"])
def test_a_file_that_a_resume_has_written_again_is_read_again(path, replaces):
    path.write_text(lines(*(record(i, loss=float(i)) for i in range(5))))
    file = MetricsFile(path)
    file.update()
    new = lines(record(0, loss=0.0), record(1, loss=7.0))
    if replaces:
        (path.parent / "draft").write_text(new)
        os.replace(path.parent / "draft", path)
    else:
        path.write_text(new)
    assert file.update()
    assert file.points("loss").values.tolist() == [0.0, 7.0]


def test_a_file_that_was_rewritten_in_place_and_has_grown_is_noticed(path):
    path.write_text(lines(record(1, loss=1.0)))
    file = MetricsFile(path)
    file.update()
    path.write_text(lines(record(1, loss=2.0), record(2, loss=3.0)))
    file.update()
    assert file.points("loss").values.tolist() == [2.0, 3.0]


def test_damage_and_foreign_lines_are_passed_over(path):
    odd = ["", "null", "[1]", "{", '{"iter": true, "a": 1}', '{"iter": -1, "a": 1}', "\x00\xff"]
    odd += ['{"iter": 1, "a": "text", "b": true, "c": null, "d": [1], "iter_time": "NaN"}']
    odd += ['{"iter": 2, "e": 1' + "0" * 400 + "}", '{"iter": 99999999999999999999, "f": 1}']
    odd += ["[" * 100_000]
    path.write_text("\n".join(odd) + "\n" + lines(record(3, loss=1.0)))
    file = MetricsFile(path)
    file.update()
    assert set(file.series) == {"iter_time", "e", "loss"}
    assert file.latest()["loss"] == 1.0 and file.latest()["e"] == float("inf")


def test_two_lines_in_one_do_not_count_as_two(path):
    path.write_text('{"iter": 1, "a": 1}, {"iter": 2, "a": 2}\n{"iter": 3, "a": 3}\n')
    file = MetricsFile(path)
    file.update()
    assert file.points("a").iters.tolist() == [3]


def test_a_line_of_a_gigabyte_is_not_read_into_memory(path):
    path.write_text(lines(record(1, loss=1.0)))
    with path.open("r+b") as file:
        file.seek(0, 2)
        file.write(b'{"iter": 2, "x": "')
        file.truncate(1_000_000_000)  # A hole: it takes no room on the disk.
    with path.open("ab") as file:
        file.write(b'"}\n' + lines(record(3, loss=0.5)).encode())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    followed = MetricsFile(path)
    followed.update()
    assert followed.points("loss").iters.tolist() == [1, 3]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kB
    followed.update()
    assert names_in(path, 0)[0] == ["loss"]


def test_a_file_that_vanishes_or_is_a_link_has_nothing(path, tmp_path):
    path.write_text(lines(record(1, loss=1.0)))
    file = MetricsFile(path)
    file.update()
    path.rename(tmp_path / "elsewhere")
    assert file.update() and not file.series
    path.symlink_to(tmp_path / "elsewhere")
    assert not file.update() and not file.series


def test_the_number_of_values_is_limited(path, monkeypatch):
    monkeypatch.setattr(metrics_file, "MOST_VALUES", 10)
    monkeypatch.setattr(metrics_file, "CHUNK", 1000)
    path.write_text(lines(*(record(i, loss=1.0) for i in range(1000))))
    file = MetricsFile(path)
    file.update()
    assert file.is_cut and file.count < 100


def test_series_are_described(path):
    path.write_text(lines(record(1, loss=1.0), record(9, loss=0.5)))
    file = MetricsFile(path)
    file.update()
    (one,) = file.describe()
    assert one == {
        "name": "loss", "count": 2, "span": "iter", "phase": "train", "first": 1, "last": 9,
    }  # fmt: skip


def test_a_long_file_is_read_in_parts(path, monkeypatch):
    monkeypatch.setattr(metrics_file, "CHUNK", 1000)
    path.write_text(lines(*(record(i, loss=float(i)) for i in range(100))))
    file = MetricsFile(path)
    shares, calls = [], 0
    while file.is_behind or not calls:
        file.update(until=0)
        shares.append(file.share)
        calls += 1
    assert calls > 5 and shares == sorted(shares) and shares[0] < 0.5 and shares[-1] == 1
    assert file.points("loss").values.tolist() == [float(i) for i in range(100)]
    assert not file.update()


def test_half_a_line_at_the_end_does_not_count_as_unread_for_ever(path):
    path.write_text(lines(record(1, loss=1.0)) + '{"iter"')
    file = MetricsFile(path)
    file.update(until=0)
    file.update(until=0)
    assert not file.is_behind and file.share == 1


def test_a_line_without_an_end_keeps_nobody_waiting(path):
    path.write_text(" " * 20_000_000 + "\n" + lines(record(1, loss=1.0)))
    file = MetricsFile(path)
    calls = 0
    while not calls or file.is_behind:
        file.update(until=0)  # There is time for one part.
        calls += 1
    assert calls > 10 and file.points("loss").values.tolist() == [1.0]
