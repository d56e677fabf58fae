import pytest

from hookloop.errors import HookloopError
from hookloop.runs.layout import RunDir
from hookloop.runs.table import Filter, check_columns, differing_keys, read_rows, sort_rows
from hookloop.runs.tags import add_tags

CONFIG = {"name": "x", "seed": 0, "optimizer": {"type": "SGD", "lr": 0.1}}


@pytest.fixture
def rows(tmp_path):
    """Four runs: of different rates, one without a result, one of another config, one damaged."""
    make(tmp_path, "a", 0.1, {"val/accuracy": 0.5}, tags=["baseline"])
    make(tmp_path, "b", 0.01, {"val/accuracy": "NaN"}, status="failed")
    make(tmp_path, "c", 0.001, {"val/accuracy": 0.9}, momentum=0.9)
    RunDir.create(tmp_path / "d").summary_file.write_text("{")
    (tmp_path / "d" / "config.yaml").write_text("[")
    return read_rows(tmp_path)


def make(root, name, lr, metrics, status="completed", tags=(), **more):
    run = RunDir.create(root / name)
    run.write_config(CONFIG | {"name": name, "optimizer": {"type": "SGD", "lr": lr, **more}})
    best = {name: {"value": 0.95, "epoch": 2} for name in metrics}
    summary = {"status": status, "started": f"2026-01-0{len(name)}", "metrics": metrics}
    run.write_summary({**summary, "best": best, "iter": 3, "epoch": 1})
    if tags:
        add_tags(run, tags)


def named(rows):
    return "".join(row.run.name for row in rows)


def test_a_column_is_a_key_a_metric_or_a_best(rows):
    row = next(row for row in rows if row.run.name == "a")
    names = ("run", "status", "iters", "optimizer.lr", "val/accuracy", "best.val/accuracy", "tags")
    found = [row.value(name) for name in names]
    assert found == ["a", "completed", 3, 0.1, 0.5, 0.95, ["baseline"]]
    assert row.value("nothing") is None
    assert row.record()["config"]["optimizer.lr"] == 0.1


def test_keys_that_differ_are_found(rows):
    assert differing_keys(rows) == ["optimizer.lr", "optimizer.momentum"]
    assert differing_keys(rows[:1]) == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("status=completed", "ac"),
        ("status!=completed", "bd"),
        ("status=*ed", "abc"),
        ("optimizer.lr<0.05", "bc"),
        ("optimizer.lr <= 0.01", "bc"),
        ("optimizer.lr=1e-2", "b"),
        ("optimizer.lr>=0.1", "a"),
        ("optimizer.momentum=none", "abd"),
        ("optimizer.type=SGD", "abc"),
        ("val/accuracy>0.4", "ac"),
        ("tag=baseline", "a"),
        ("tag!=baseline", "bcd"),
        ("run>b", "cd"),
    ],
)
def test_filters_choose_runs(rows, text, names):
    accepted = [row for row in rows if Filter.parse(text).accepts(row)]
    assert sorted(named(accepted)) == list(names)


def test_runs_without_a_number_come_last(rows):
    assert named(sort_rows(rows, "val/accuracy"))[:2] == "ac"
    assert named(sort_rows(rows, "val/accuracy", descending=True))[:2] == "ca"
    assert named(sort_rows(rows, "run", descending=True)) == "dcba"
    assert named(sort_rows(rows, "optimizer.lr")) == "cbad"


def test_mistakes_are_rejected_with_the_nearest_name(rows):
    with pytest.raises(HookloopError, match="'optimizer.lr'"):
        check_columns(rows, ["run", "optimiser.lr"])
    with pytest.raises(HookloopError, match="is not a filter"):
        Filter.parse("status")
    check_columns([], ["anything"])
