"""What hooks request of the loop, until it is done."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hookloop.checkpoint.request import Save

if TYPE_CHECKING:
    from hookloop.checkpoint.index import Saved

Wanted = bool | frozenset[str]
"""Which validation streams to run: all, none, or those with these names."""


@dataclass(frozen=True)
class Stop:
    """A request to end the training: why, and by which signal if by one."""

    reason: str
    signal: int | None = None


def both(one: Wanted, other: Wanted) -> Wanted:
    """Return what two requests for a validation ask for together."""
    if isinstance(one, frozenset) and isinstance(other, frozenset):
        return one | other
    return one is True or other is True or one or other


@dataclass(slots=True)
class Requests:
    """What hooks requested and the loop has not done yet."""

    stop: Stop | None = None
    validate: Wanted = False
    saves: list[Save] = field(default_factory=list)
    news: list[Saved] = field(default_factory=list)  # Checkpoints that have become durable.
    calls: deque[Callable[[Any], object]] = field(default_factory=deque)  # To make between iters.
    any: bool = False  # Whether there is anything, so that the loop reads one attribute per iter.
