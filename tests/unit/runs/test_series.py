import math

import pytest

from hookloop.errors import MissingMetricError
from hookloop.runs.layout import RunDir
from hookloop.runs.series import Column, History, history

LINES = """\
{"iter": 1, "epoch": 0, "phase": "train", "span": "iter", "time": 5.0, "train/loss": 0.5}
{"iter": 2, "epoch": 0, "phase": "train", "train/loss": "NaN", "name": "text", "flag": true}
not json
[1, 2]
{"train/loss": 7}
{"iter": 2, "epoch": 1, "phase": "val", "val/loss": 0.25}
{"iter": 3, "train/loss": 1
"""


def test_the_metrics_of_a_run_are_columns(tmp_path):
    run = RunDir.create(tmp_path / "run")
    assert history(run) == {}
    run.metrics_file.write_text(LINES + '{"iter": 4, "train/loss": 9}')
    found = history(str(run.path))
    assert found.keys() == {"train/loss", "val/loss"}
    assert found["val/loss"] == Column([2], [0.25])
    assert found["train/loss"].iters == [1, 2]
    assert math.isnan(found["train/loss"].values[1])
    assert Column([1, 1], [0.5, 0.7]).at() == {1: 0.7}


def test_a_history_is_a_table(tmp_path):
    columns = {
        "val/loss": Column([3, 6], [0.5, 0.25]),
        "train/iter_time": Column([1], [0.1]),
        "train/x<y": Column([3], [math.nan]),
    }
    found = History(columns)
    assert found.rows() == [
        {"iter": 1, "train/iter_time": 0.1},
        {"iter": 3, "val/loss": 0.5, "train/x<y": pytest.approx(math.nan, nan_ok=True)},
        {"iter": 6, "val/loss": 0.25},
    ]
    table = found.to_pandas()
    assert list(table.index) == [1, 3, 6] and list(table.columns) == list(columns)
    assert table["val/loss"].dropna().to_dict() == {3: 0.5, 6: 0.25}
    assert [line.split() for line in repr(found).splitlines()] == [
        ["metric", "values", "first", "last", "best"],
        ["val/loss", "2", "0.5", "0.25", "0.25", "at", "6"],
        ["train/x<y", "1", "nan", "nan"],
    ]
    assert "iter_time" not in repr(found) and "x&lt;y" in found._repr_html_()
    with pytest.raises(MissingMetricError, match="'val/los'. Did you mean 'val/loss'"):
        found["val/los"]
    assert History().to_pandas().empty and "'metrics' writes them" in repr(History())
