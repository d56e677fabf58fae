"""JSON as a run writes it: NaN and infinities become text, so that every reader accepts it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from hookloop.secret import redact

_SPELLED = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def to_json(value: object, *, indent: int | None = None) -> str:
    """Return ``value`` as JSON; NaN and the infinities become strings, because JSON lacks them.

    Numbers of other libraries (a numpy or torch scalar) are written as the Python number they hold.
    Any other object is written as its text.

    >>> to_json({"loss": float("nan"), "lr": 0.1})
    '{"loss": "NaN", "lr": 0.1}'
    """
    return json.dumps(plain(value), indent=indent, allow_nan=False, ensure_ascii=False)


def to_number(value: object) -> object:
    """Return NaN and the infinities, written as text, as floats, and any other value as it is.

    >>> to_number("-Infinity"), to_number("epoch 3")
    (-inf, 'epoch 3')
    """
    return _SPELLED.get(value, value) if isinstance(value, str) else value


def plain(value: object) -> object:
    """Return ``value`` as what JSON can hold: mappings, lists, text and finite numbers."""
    if value is None or isinstance(value, bool | int | str):
        return redact(value) if isinstance(value, str) else value
    if isinstance(value, float):
        return value if math.isfinite(value) else _spell(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    # A numpy or torch scalar; an array of several numbers has no single value and becomes its text.
    item = getattr(value, "item", None)
    if callable(item) and getattr(value, "ndim", None) == 0:
        return plain(item())
    return str(value)


def _spell(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"
