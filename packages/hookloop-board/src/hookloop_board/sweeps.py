"""The sweeps among the runs: what was varied, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hookloop.runs import SWEEP_FILE as SWEEP
from hookloop.runs import make_safe_line, parse_json, to_number
from hookloop_board.collection import Collection, Entry
from hookloop_board.files import read_inside
from hookloop_board.run_view import sweep_id

LARGEST = 16_000_000
MOST_TRIALS = 10_000


def sweeps_view(collection: Collection) -> dict[str, object]:
    """Return the answer to ``/api/sweeps``."""
    trials: dict[Path, dict[str, Entry]] = {}
    for entry in collection.entries().values():
        home = entry.home
        trials.setdefault(home.parent, {})[home.name] = entry
        # With folds, the runs of a trial are one level deeper: the first stands for it.
        trials.setdefault(home.parent.parent, {}).setdefault(home.parent.name, entry)
    found = [_sweep(folder, runs) for folder, runs in trials.items() if (folder / SWEEP).is_file()]
    return {"sweeps": [one for one in found if one is not None]}


def _sweep(folder: Path, runs: Mapping[str, Entry]) -> dict[str, object] | None:
    try:
        data = parse_json(read_inside(folder, SWEEP, LARGEST))
    except (OSError, ValueError):
        return None
    listed = data.get("trials") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(listed, list):
        return None
    trials = [_trial(one, runs) for one in listed[:MOST_TRIALS] if isinstance(one, dict)]
    names = dict.fromkeys(
        name for one in trials if isinstance(one["params"], dict) for name in one["params"]
    )
    return {
        "id": sweep_id(folder),
        "name": make_safe_line(folder.name),
        "metric": str(data.get("metric", "")),
        "direction": "maximize" if data.get("mode") == "max" else "minimize",
        "parameters": list(names),
        "log": _on_log(data.get("space")),
        "trials": trials,
    }


def _on_log(space: object) -> list[str]:
    """Return the parameters of which each factor of ten was equally likely: ``log(LOW,HIGH)``."""
    found = space.items() if isinstance(space, dict) else ()
    return [str(name) for name, one in found if isinstance(one, dict) and one.get("is_log") is True]


def _trial(one: Mapping[str, object], runs: Mapping[str, Entry]) -> dict[str, object]:
    entry = runs.get(str(one.get("run")))
    value, params = to_number(one.get("value")), one.get("params")
    return {
        "number": one.get("number"),
        "run": entry.id if entry is not None else None,
        "state": str(one.get("state", "")),
        "problem": make_safe_line(str(one.get("problem") or ""), 500),
        "value": value if isinstance(value, int | float) else None,
        "params": params if isinstance(params, dict) else {},
    }
