"""Sweeps among the runs."""

import json

from board_runs import write_run
from hookloop.cli.search.sweep_space import describe, split
from hookloop_board.collection import Collection
from hookloop_board.run_view import row_view
from hookloop_board.sweeps import sweeps_view


def test_a_sweep_is_shown_with_its_trials(tmp_path):
    folder = tmp_path / "sweep"
    write_run(folder / "trial_0000")
    write_run(folder / "trial_0001" / "fold_0")
    trials = [
        {
            "number": 0,
            "state": "complete",
            "value": 0.9,
            "params": {"lr": 0.1},
            "run": "trial_0000",
        },
        {
            "number": 1,
            "state": "complete",
            "value": "NaN",
            "params": {"lr": 0.2},
            "run": "trial_0001",
            "problem": "exit code 1\x1b[31m",
        },
        {"number": 2, "state": "running", "value": None, "params": 3, "run": "../../x"},
        "odd",
    ]
    (folder / "sweep.json").write_text(
        json.dumps(
            {
                "metric": "val/accuracy",
                "mode": "max",
                "space": {**describe(split(["lr=log(1e-3,1)", "width=[1,2]"])[0]), "odd": 3},
                "trials": trials,
            }
        )
    )
    collection = Collection([tmp_path])
    (sweep,) = sweeps_view(collection)["sweeps"]
    assert (sweep["metric"], sweep["direction"], sweep["parameters"]) == (
        "val/accuracy",
        "maximize",
        ["lr"],
    )
    assert sweep["log"] == ["lr"]
    first, second, third = sweep["trials"]
    assert (first["problem"], second["problem"]) == ("", r"exit code 1\x1b[31m")
    rows = {one["name"]: one for one in map(row_view, collection.entries().values())}
    assert first["run"] == rows["sweep/trial_0000"]["id"]
    assert second["run"] == rows["sweep/trial_0001/fold_0"]["id"] and third["run"] is None
    assert (
        rows["sweep/trial_0000"]["sweep"] == sweep["id"]
        and rows["sweep/trial_0001/fold_0"]["trial"] == 1
    )


def test_a_damaged_sweep_is_left_out(tmp_path):
    write_run(tmp_path / "s" / "trial_0000")
    for text in ("{", "[]", '{"trials": 3}'):
        (tmp_path / "s" / "sweep.json").write_text(text)
        assert sweeps_view(Collection([tmp_path])) == {"sweeps": []}
