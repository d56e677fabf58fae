"""Hooks written for another system: what is no hook of ours is shown to the dialects.

They are named by path, because imports run from dialects to core and not back, and because a run
without foreign hooks should not import them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import cast

from hookloop.core.hook import Hook

DIALECTS = "hookloop.dialects"

Adapt = Callable[[object], "list[Hook]"]


def adapt(hook: object) -> list[Hook]:
    """Return a hook as it is, or those that stand for a foreign one.

    What nobody knows is returned too; the plan refuses it, with all it has to say about that.
    """
    if isinstance(hook, Hook | type):
        return [cast("Hook", hook)]
    found = cast("Adapt", import_module(DIALECTS).adapt)(hook)
    return found or [cast("Hook", hook)]


def adapt_all(hooks: Iterable[object]) -> list[Hook]:
    """Adapt several."""
    return numbered((hook, adapt(hook)) for hook in hooks)


def numbered(adapted: Iterable[tuple[object, list[Hook]]]) -> list[Hook]:
    """List adapted hooks; foreign ones of one name get numbers, as their systems ask for none."""
    listed: list[Hook] = []
    taken: Counter[str] = Counter()
    for hook, ours in adapted:
        for one in ours:
            name = getattr(one, "name", "")
            taken[name] += 1
            if one is not hook and taken[name] > 1:
                one.named(f"{name}_{taken[name]}")
        listed += ours
    return listed
