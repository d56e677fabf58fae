"""A run on disk: its files, and how to read them. It needs neither torch nor the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookloop.lazy import load_name

if TYPE_CHECKING:
    from hookloop.runs.asking import ask
    from hookloop.runs.changes import read_changes
    from hookloop.runs.config_values import read_config
    from hookloop.runs.interventions import read_interventions
    from hookloop.runs.layout import RunDir
    from hookloop.runs.reader import Best, RunSummary, list_runs, summarize
    from hookloop.runs.series import Column, history
    from hookloop.runs.table import RunRow, read_rows
    from hookloop.runs.tags import Labels, read_labels

__all__ = [
    "Best",
    "Column",
    "Labels",
    "RunDir",
    "RunRow",
    "RunSummary",
    "ask",
    "history",
    "list_runs",
    "read_changes",
    "read_config",
    "read_interventions",
    "read_labels",
    "read_rows",
    "summarize",
]

_MODULE_OF = {
    "Best": "reader",
    "Column": "series",
    "Labels": "tags",
    "RunDir": "layout",
    "RunRow": "table",
    "RunSummary": "reader",
    "ask": "asking",
    "history": "series",
    "list_runs": "reader",
    "read_changes": "changes",
    "read_config": "config_values",
    "read_interventions": "interventions",
    "read_labels": "tags",
    "read_rows": "table",
    "summarize": "reader",
}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'hookloop.runs' has no attribute '{name}'")
    return load_name(globals(), f"hookloop.runs.{_MODULE_OF[name]}", name)


def __dir__() -> list[str]:
    return __all__
