"""A run on disk: its files, and how to read them. It needs neither torch nor the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookloop.lazy import load_name

if TYPE_CHECKING:
    from hookloop.runs.asking import DEEDS, Deed, ask
    from hookloop.runs.changes import read_changes
    from hookloop.runs.checkpoint_names import (
        INDEX as CHECKPOINT_INDEX,
    )
    from hookloop.runs.checkpoint_names import (
        LAST as LAST_CHECKPOINT,
    )
    from hookloop.runs.checkpoint_names import (
        MANIFEST as CHECKPOINT_MANIFEST,
    )
    from hookloop.runs.checkpoint_names import best_name, checkpoint_name
    from hookloop.runs.checksum import find_damage
    from hookloop.runs.config_values import is_whole, parse_config, read_config
    from hookloop.runs.csv_cells import read_cell, safe_cell
    from hookloop.runs.differences import differing, read_environment
    from hookloop.runs.environment import read_starts
    from hookloop.runs.family import Branch, read_tree
    from hookloop.runs.files import reject_links, write_bytes
    from hookloop.runs.interventions import read_interventions
    from hookloop.runs.layout import RunDir
    from hookloop.runs.lineage import Inherited, Past, past_of
    from hookloop.runs.lock import LOCK as RUN_LOCK
    from hookloop.runs.metrics_file import LONGEST_LINE, STAMPS
    from hookloop.runs.plain_yaml import key_lines
    from hookloop.runs.policy import Rule, infer_rule, is_of_machine, rule_of
    from hookloop.runs.reader import (
        SWEEP as SWEEP_FILE,
    )
    from hookloop.runs.reader import (
        Best,
        RunSummary,
        find_runs,
        list_runs,
        read_time,
        relative_to,
        summarize,
        summarize_safely,
    )
    from hookloop.runs.reading import opened_to_read, parse_json, read_most
    from hookloop.runs.records import to_json, to_number
    from hookloop.runs.series import Column, History, history
    from hookloop.runs.shown import make_safe, make_safe_line
    from hookloop.runs.table import RunRow, differing_keys, read_rows, row_of
    from hookloop.runs.tags import FILE as LABELS_FILE
    from hookloop.runs.tags import Labels, read_labels, set_labels
    from hookloop.secret import has_secrets

__all__ = [
    "CHECKPOINT_INDEX",
    "CHECKPOINT_MANIFEST",
    "DEEDS",
    "LABELS_FILE",
    "LAST_CHECKPOINT",
    "LONGEST_LINE",
    "RUN_LOCK",
    "STAMPS",
    "SWEEP_FILE",
    "Best",
    "Branch",
    "Column",
    "Deed",
    "History",
    "Inherited",
    "Labels",
    "Past",
    "Rule",
    "RunDir",
    "RunRow",
    "RunSummary",
    "ask",
    "best_name",
    "checkpoint_name",
    "differing",
    "differing_keys",
    "find_damage",
    "find_runs",
    "has_secrets",
    "history",
    "infer_rule",
    "is_of_machine",
    "is_whole",
    "key_lines",
    "list_runs",
    "make_safe",
    "make_safe_line",
    "opened_to_read",
    "parse_config",
    "parse_json",
    "past_of",
    "read_cell",
    "read_changes",
    "read_config",
    "read_environment",
    "read_interventions",
    "read_labels",
    "read_most",
    "read_rows",
    "read_starts",
    "read_time",
    "read_tree",
    "reject_links",
    "relative_to",
    "row_of",
    "rule_of",
    "safe_cell",
    "set_labels",
    "summarize",
    "summarize_safely",
    "to_json",
    "to_number",
    "write_bytes",
]

_NAMES_BY_MODULE = {
    "hookloop.runs.asking": (
        "DEEDS",
        "Deed",
        "ask",
    ),
    "hookloop.runs.changes": ("read_changes",),
    "hookloop.runs.checkpoint_names": (
        "best_name",
        "checkpoint_name",
    ),
    "hookloop.runs.checksum": ("find_damage",),
    "hookloop.runs.config_values": (
        "is_whole",
        "parse_config",
        "read_config",
    ),
    "hookloop.runs.csv_cells": (
        "read_cell",
        "safe_cell",
    ),
    "hookloop.runs.differences": (
        "differing",
        "read_environment",
    ),
    "hookloop.runs.environment": ("read_starts",),
    "hookloop.runs.family": ("Branch", "read_tree"),
    "hookloop.runs.files": (
        "reject_links",
        "write_bytes",
    ),
    "hookloop.runs.interventions": ("read_interventions",),
    "hookloop.runs.layout": ("RunDir",),
    "hookloop.runs.lineage": (
        "Inherited",
        "Past",
        "past_of",
    ),
    "hookloop.runs.metrics_file": (
        "LONGEST_LINE",
        "STAMPS",
    ),
    "hookloop.runs.plain_yaml": ("key_lines",),
    "hookloop.runs.policy": (
        "Rule",
        "infer_rule",
        "is_of_machine",
        "rule_of",
    ),
    "hookloop.runs.reader": (
        "Best",
        "RunSummary",
        "find_runs",
        "list_runs",
        "read_time",
        "relative_to",
        "summarize",
        "summarize_safely",
    ),
    "hookloop.runs.reading": (
        "opened_to_read",
        "parse_json",
        "read_most",
    ),
    "hookloop.runs.records": (
        "to_json",
        "to_number",
    ),
    "hookloop.runs.series": (
        "Column",
        "History",
        "history",
    ),
    "hookloop.runs.shown": (
        "make_safe",
        "make_safe_line",
    ),
    "hookloop.runs.table": (
        "RunRow",
        "differing_keys",
        "read_rows",
        "row_of",
    ),
    "hookloop.runs.tags": (
        "Labels",
        "read_labels",
        "set_labels",
    ),
    "hookloop.secret": ("has_secrets",),
}
_MODULE_OF = {name: module for module, names in _NAMES_BY_MODULE.items() for name in names}
_FILES = {
    "CHECKPOINT_INDEX": ("hookloop.runs.checkpoint_names", "INDEX"),
    "CHECKPOINT_MANIFEST": ("hookloop.runs.checkpoint_names", "MANIFEST"),
    "LAST_CHECKPOINT": ("hookloop.runs.checkpoint_names", "LAST"),
    "RUN_LOCK": ("hookloop.runs.lock", "LOCK"),
    "SWEEP_FILE": ("hookloop.runs.reader", "SWEEP"),
    "LABELS_FILE": ("hookloop.runs.tags", "FILE"),
}
"""Names of files, which have a shorter name in the module that defines them."""


def __getattr__(name: str) -> object:
    if name in _FILES:
        return load_name({}, *_FILES[name])
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'hookloop.runs' has no attribute '{name}'")
    return load_name(globals(), _MODULE_OF[name], name)


def __dir__() -> list[str]:
    return __all__
