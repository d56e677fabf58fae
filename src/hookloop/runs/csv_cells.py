"""Cells of CSV files that no spreadsheet takes for formulas: every CSV file that we write has them.

A spreadsheet computes a cell that begins with ``=``, ``+``, ``-`` or ``@``, also in the header, and
a formula can send what is beside it elsewhere. Names of metrics and classes may be anybody's.
"""

from __future__ import annotations

from collections.abc import Iterable

_BEGINNINGS = ("=", "+", "-", "@", "\t", "\r")


def safe_cell(value: object) -> object:
    """Return a value for a cell; text that would be a formula gets an apostrophe in front.

    Numbers stay as they are, also as text.

    >>> safe_cell("=1+1"), safe_cell("-loss"), safe_cell("-1.5"), safe_cell(-2), safe_cell("loss")
    ("'=1+1", "'-loss", '-1.5', -2, 'loss')
    """
    # A sign alone computes nothing.
    is_formula = isinstance(value, str) and len(value) > 1 and value.startswith(_BEGINNINGS)
    return f"'{value}" if is_formula and not _is_number(str(value)) else value


def safe_row(values: Iterable[object]) -> list[object]:
    """Return the cells of a row."""
    return [safe_cell(value) for value in values]


def read_cell(text: str) -> str:
    """Return the text that `safe_cell` was given.

    >>> read_cell("'=1+1"), read_cell("'quoted'")
    ('=1+1', "'quoted'")
    """
    is_safe = len(text) > 2 and text[0] == "'" and text[1:].startswith(_BEGINNINGS)
    return text[1:] if is_safe else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.strip() == text
