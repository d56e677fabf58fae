"""A run as a row of the table, and its overview."""

import gzip
import json
from pathlib import Path

from board_runs import entry_of, locked, record, write_run
from hookloop.runs.records import to_json
from hookloop_board.collection import Collection
from hookloop_board.run_view import (
    ListAnswer,
    list_view,
    quote,
    row_view,
    run_view,
    warnings_of,
)


def test_a_row_has_what_the_table_shows(tmp_path):
    write_run(tmp_path / "a")
    _, entry = entry_of(tmp_path)
    row = row_view(entry)
    assert row["status"] == "completed" and row["seconds"] == 100.0
    assert (row["iters"], row["total_iters"], row["epochs"], row["total_epochs"]) == (
        100,
        100,
        5,
        5,
    )
    assert row["bests"] == {"val/accuracy": {"value": 0.95, "iter": 80, "epoch": 4}}
    assert row["main_metric"] == "val/accuracy" and row["config"] == {"optimizer.lr": 0.1}
    assert row["remaining"] is None and row["sweep"] is None


def test_only_keys_that_differ_are_named(tmp_path):
    for name, rate in (("a", 0.1), ("b", 0.2)):
        write_run(tmp_path / name, config=f"seed: 0\noptimizer:\n  lr: {rate}\n")
    collection = entry_of(tmp_path / "a")[0].__class__([tmp_path])
    found = list_view(collection, can_change=True)
    assert found["differing"] == ["optimizer.lr"] and found["metrics"] == [
        "train/loss",
        "val/accuracy",
    ]


def test_an_older_run_has_its_totals_in_its_config(tmp_path):
    write_run(
        tmp_path / "a",
        summary={"total_iters": None, "total_epochs": None},
        config="max_epochs: 7\n",
    )
    summary = json.loads((tmp_path / "a" / "summary.json").read_text())
    for name in ("total_iters", "total_epochs"):
        del summary[name]
    (tmp_path / "a" / "summary.json").write_text(json.dumps(summary))
    row = row_view(entry_of(tmp_path)[1])
    assert (row["total_iters"], row["total_epochs"]) == (None, 7)


def test_a_summary_that_is_newer_than_the_last_lines_is_shown(tmp_path):
    for name, last, expected in (("killed", 90, 0.001), ("whole", 100, 0.01)):
        write_run(
            tmp_path / name,
            [record(i, **{"train/loss": 1 / i}) for i in range(10, last + 1, 10)],
            {"iter": 100, "metrics": {"train/loss": 0.001}},
        )
        assert run_view(*entry_of(tmp_path / name))["metrics"]["train/loss"] == expected


def test_the_overview_has_speed_memory_warnings_and_series(tmp_path):
    values = {"train/iter_time": 0.1, "train/data_time": 0.01, "train/memory/rss": 300.0}
    path = write_run(tmp_path / "a", [record(1, **values, **{"train/samples_per_second": 80.0})])
    (path / "run.log").write_text(
        "2026-01-31 09:00:00  process 1\n2026-01-31 09:00:01  warning: it is slow\x1b[31m\n  more\n"
        "2026-01-31 09:00:02  error: failed\n"
    )
    (path / "environment.json").write_text(
        json.dumps({"starts": [{"iter": 0, "host": "h", "packages": {}}]})
    )
    found = run_view(*entry_of(tmp_path))
    assert found["speed"] == {"iter_time": 0.1, "data_time": 0.01, "samples_per_second": 80.0}
    assert found["memory"] == {"rss": 300.0 * 2**20}
    assert [one["text"] for one in found["warnings"]] == ["it is slow\\x1b[31m", "failed"]
    assert found["starts"] == [{"iter": 0, "host": "h", "git": None}]
    assert {one["name"] for one in found["series"]} == {*values, "train/samples_per_second"}
    assert found["command"] == f"hookloop resume {path}"


def test_hostile_names_stay_text(tmp_path):
    name = "<img src=x onerror=alert(1)>\x1b[2J'; rm -rf ~"
    path = write_run(tmp_path / name, summary={"problem": "x", "disabled": [{"hook": "<b>"}, 3]})
    collection, entry = entry_of(tmp_path)
    found = run_view(collection, entry)
    assert "\x1b" not in json.dumps(found["name"], ensure_ascii=False)
    assert found["disabled_hooks"] == [{"hook": "<b>"}] and found["problem"] == {"text": "x"}
    import shlex

    assert shlex.split(found["command"]) == ["hookloop", "resume", str(path)]


def test_a_run_without_a_config_has_no_command(tmp_path):
    write_run(tmp_path / "a", config="")
    collection, entry = entry_of(tmp_path)
    assert run_view(collection, entry)["command"] is None


def test_a_run_of_a_script_is_compared_and_not_resumed(tmp_path):
    path = write_run(tmp_path / "a", config="")
    (path / "trained_with.yaml").write_text("optimizer: {type: SGD, lr: 0.5}\n")
    collection, entry = entry_of(tmp_path)
    found = run_view(collection, entry)
    assert found["config"] == {"optimizer.type": "SGD", "optimizer.lr": 0.5}
    assert found["command"] is None and not found["has_config"]


def test_what_a_script_trains_with_is_seen_when_it_is_written(tmp_path):
    path = write_run(tmp_path / "a", config="")
    collection, entry = entry_of(tmp_path)
    assert row_view(entry)["config"] == {}
    (path / "trained_with.yaml").write_text("optimizer: {lr: 0.5}\n")
    (entry,) = collection.entries(fresh=0).values()
    assert row_view(entry)["config"] == {"optimizer.lr": 0.5}


def test_a_run_that_lives_is_not_resumed(tmp_path):
    path = write_run(tmp_path / "a", summary={"status": "running"})
    with locked(path):
        collection, entry = entry_of(tmp_path)
        assert entry.summary.status == "running"
        found = run_view(collection, entry)
    assert found["command"] is None and found["has_config"]


def test_metrics_are_judged_by_the_policy(tmp_path):
    values = {"val/loss": 1.0, "train/iter_time": 0.1, "val/fan_speed": 3.0, "val/zebra": 2.0}
    write_run(tmp_path / "a", [record(1, **values)], {"metrics": values, "machine": ["val/fan_*"]})
    collection, entry = entry_of(tmp_path)
    for found in (run_view(collection, entry), list_view(collection, can_change=True)):
        assert found["machine"] == ["train/iter_time", "val/fan_speed"]
        assert found["better"] == {"val/loss": "less"}


def test_the_main_metric_is_a_result(tmp_path):
    for name, values in (
        ("val/loss", {"val/iter_time": 0.1, "val/loss": 1.0}),
        ("train/loss", {"lr": 0.1, "train/loss": 1.0}),
    ):
        path = tmp_path / name.replace("/", "-")
        write_run(path, summary={"metrics": values, "best": {}})
        assert row_view(entry_of(path)[1])["main_metric"] == name


def test_a_path_is_never_an_option():
    assert quote(Path("-rf")) == "./-rf" and quote(Path("a b")) == "'a b'"


def test_only_the_last_warnings_are_shown(tmp_path):
    lines = [f"2026-01-31 09:00:00  warning: {number}" for number in range(100)]
    (tmp_path / "run.log").write_text("\n".join(lines))
    assert [one["text"] for one in warnings_of(tmp_path)] == [str(n) for n in range(80, 100)]
    assert warnings_of(tmp_path / "missing") == []


def test_the_list_is_made_again_only_of_what_changed(tmp_path):
    for name in ("a", "b"):
        write_run(tmp_path / name, summary={"metrics": {"train/loss": "NaN"}, "reason": "ü"})
    collection = Collection([tmp_path])
    answer = ListAnswer(collection)
    data, small = answer.bytes()
    assert gzip.decompress(small) == data
    assert json.loads(data) == json.loads(to_json(list_view(collection, can_change=True)))
    assert answer.bytes()[0] is data
    write_run(tmp_path / "c")
    collection.entries(fresh=0)
    assert [one["name"] for one in json.loads(answer.bytes()[0])["runs"]] == ["a", "b", "c"]


def test_a_secret_is_not_in_the_list(tmp_path, monkeypatch):
    monkeypatch.setattr("hookloop.secret._HIDDEN", {"s3cr3t-token": "${secret:TOKEN}"})
    write_run(tmp_path / "a", config="url: https://s3cr3t-token@host\n")
    data, _ = ListAnswer(Collection([tmp_path])).bytes()
    assert b"s3cr3t" not in data and b"${secret:TOKEN}" in data
