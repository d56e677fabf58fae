"""The timetable of a run: mount points, hooks, what each call cost, and how hooks stand."""

from __future__ import annotations

from collections.abc import Mapping

from hookloop.runs import RunDir, parse_json
from hookloop_board.collection import Entry
from hookloop_board.files import read_inside

LARGEST = 4_000_000
MOST = 1_000
"""How many hooks and points are shown."""


def hooks_view(entry: Entry) -> dict[str, object]:
    """Return the answer to ``/api/runs/RUN/hooks``; empty for a run that has written none."""
    data = _read(entry.dir)
    disabled = {
        str(one.get("hook")): {
            "point": str(one.get("point", "")),
            "error": str(one.get("error", "")),
        }
        for one in _mappings(entry.extra.get("disabled"))
    }
    measured = _mapping(data.get("measured"))
    seconds = _number(measured.get("iteration_seconds"))
    iters = _number(measured.get("iters"))
    whole = seconds * iters if seconds and iters else None
    hooks = [
        {**_hook(one), "disabled": disabled.get(str(one.get("name")))}
        for one in _mappings(data.get("hooks"))
    ]
    cells = []
    for one in _mappings(data.get("cells")):
        spent = _number(one.get("seconds"))
        cells.append(
            {
                "point": str(one.get("point")),
                "hook": str(one.get("hook")),
                "order": int(_number(one.get("order")) or 0),
                "calls": None if (calls := _number(one.get("calls"))) is None else int(calls),
                "seconds": spent,
                "share": None if spent is None or not whole else spent / whole,
            }
        )
    points = data.get("points")
    return {
        "points": [str(one) for one in points][:MOST] if isinstance(points, list) else [],
        "hooks": hooks,
        "cells": cells,
        "iteration_seconds": seconds,
        "measured": str(measured["text"]) if isinstance(measured.get("text"), str) else None,
    }


def _hook(one: Mapping[str, object]) -> dict[str, object]:
    state = one.get("state")
    return {
        "name": str(one.get("name")),
        "type": str(one.get("type", "")),
        "priority": _number(one.get("priority")),
        "policy": str(one.get("policy", "")),
        "reads": _texts(one.get("reads")),
        "writes": _texts(one.get("writes")),
        "every": {str(k): str(v) for k, v in _mapping(one.get("every")).items()},
        "ranks": str(one.get("ranks", "")),
        "state": state if isinstance(state, dict) and state else None,
    }


def _read(run: RunDir) -> Mapping[str, object]:
    try:
        return _mapping(parse_json(read_inside(run.path, run.hooks_file.name, LARGEST)))
    except (OSError, ValueError):
        return {}


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _mappings(value: object) -> list[Mapping[str, object]]:
    found = value if isinstance(value, list) else []
    some = found[:MOST]
    return [one for one in some if isinstance(one, dict)]


def _texts(value: object) -> list[str]:
    return [str(one) for one in value][:MOST] if isinstance(value, list) else []


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) < 1e18 else None
