"""The timetable of a run on the page."""

import json

from board_runs import entry_of, write_run
from hookloop_board.timetable import hooks_view

HOOK = {"name": "nan", "type": "StopOnNaN", "priority": 50, "policy": "raise", "ranks": "all"}
CELL = {"point": "after_train_iter", "hook": "nan", "order": 0, "calls": 20, "seconds": 0.1}


def view(tmp_path, content, **summary):
    path = write_run(tmp_path / "a", summary=summary)
    (path / "hooks.json").write_text(content if isinstance(content, str) else json.dumps(content))
    return hooks_view(entry_of(tmp_path)[1])


def test_costs_are_shares_of_the_iteration(tmp_path):
    measured = {"text": "iterations 11 to 30", "iters": 20, "iteration_seconds": 0.05}
    found = view(
        tmp_path,
        {"points": ["after_train_iter"], "hooks": [HOOK], "cells": [CELL], "measured": measured},
        disabled=[{"hook": "nan", "point": "after_run", "error": "OSError: full"}],
    )
    assert found["cells"] == [{**CELL, "share": 0.1}]
    assert found["measured"] == "iterations 11 to 30" and found["iteration_seconds"] == 0.05
    (hook,) = found["hooks"]
    assert (
        hook["disabled"] == {"point": "after_run", "error": "OSError: full"}
        and hook["state"] is None
    )


def test_what_was_not_measured_has_no_cost(tmp_path):
    found = view(
        tmp_path,
        {
            "hooks": [{**HOOK, "state": {"lr": 0.1}}],
            "cells": [{**CELL, "calls": None, "seconds": None}],
        },
    )
    assert found["cells"][0]["share"] is None and found["measured"] is None
    assert found["hooks"][0]["state"] == {"lr": 0.1}


def test_a_foreign_file_is_an_empty_timetable(tmp_path):
    for number, content in enumerate(
        [
            "[]",
            "{",
            json.dumps({"hooks": 3, "cells": [1], "points": "x", "measured": []}),
            "x" * 5_000_000,
        ]
    ):
        found = view(tmp_path / str(number), content)
        assert found == {
            "points": [],
            "hooks": [],
            "cells": [],
            "iteration_seconds": None,
            "measured": None,
        }
