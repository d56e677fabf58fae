"""Keys of other systems' configs: each adds to a key of ours, as the dialect of its system says."""

from __future__ import annotations

from collections.abc import Mapping

from hookloop import beside
from hookloop.dialects import installed


def other_keys() -> Mapping[str, str]:
    """Return the keys of the installed dialects, and ours that each adds to."""
    return {name: ours for one in installed().values() for name, ours in one.keys.items()}


def written_as(key: str) -> tuple[str, ...]:
    """Return a key of ours, and those of other systems that add to it."""
    return (key, *(name for name, ours in other_keys().items() if ours == key))


def missing_key(name: str) -> str:
    """Return which package brings a key of another system; empty if there is none."""
    ways = " or ".join(beside.install(one) for one in beside.dialects_of_key(name))
    return f" It is a key of another system: {ways} brings it." if ways else ""
