"""``emloop.utils.names``: names for directories."""

from __future__ import annotations

import random

_FIRST = (
    "bright",
    "calm",
    "clear",
    "early",
    "gentle",
    "keen",
    "lively",
    "patient",
    "quiet",
    "warm",
)
_SECOND = (
    "ada",
    "boole",
    "cantor",
    "emmy",
    "gauss",
    "hilbert",
    "kepler",
    "newton",
    "sofia",
    "turing",
)


def get_random_name(sep: str = "-") -> str:
    """Return two random words."""
    # From the system, because a name must not change the training's random numbers.
    source = random.SystemRandom()
    return f"{source.choice(_FIRST)}{sep}{source.choice(_SECOND)}"
