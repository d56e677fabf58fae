import math

from hookloop.runs.layout import RunDir
from hookloop.runs.series import Column, history

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
