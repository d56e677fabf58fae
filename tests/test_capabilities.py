"""The page of capabilities names hooks and parameters that exist.

The table has what the five systems can do; a hook without a counterpart needs no row.
"""

import inspect
import re
from pathlib import Path

import hookloop.hooks
from hookloop import Trainer

PAGE = Path(__file__).parent.parent / "docs" / "capabilities.md"
NAMED = re.compile(r"`([A-Z]\w+)(?:\(([\w, ]*)\))?`")


def rows():
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if row[0].isdigit()]


def named(text):
    return [(name, re.findall(r"\w+", given)) for name, given in NAMED.findall(text)]


def test_all_53_capabilities_are_there():
    assert [int(row[0]) for row in rows()] == list(range(1, 54))
    assert all(len(row) == 4 for row in rows())


def test_every_capability_is_provided_by_a_hook_or_by_the_engine():
    for number, _, here, remarks in rows():
        engine = here == "the engine" and (named(remarks) or "`" in remarks)
        assert named(here) or engine, number


def test_the_hooks_and_parameters_of_the_table_exist():
    for number, _, here, remarks in rows():
        for name, parameters in named(f"{here} {remarks}"):
            kind = Trainer if name == "Trainer" else getattr(hookloop.hooks, name)
            existing = set(inspect.signature(kind).parameters)
            assert set(parameters) <= existing, f"row {number}: {name}"
