"""Intervals and moments among the arguments of hooks, with the hook's name in the error."""

from __future__ import annotations

from hookloop.engine.hook import Hook
from hookloop.errors import HookError
from hookloop.every import Every


def interval_of(hook: Hook, interval: Every | int | str) -> Every:
    """Read a hook's interval within epochs: iterations, time, samples or tokens."""
    try:
        parsed = Every.parse(interval)
    except ValueError as error:
        raise HookError(f"{type(hook).__name__}: {error}") from error
    if parsed.unit == "epochs":
        raise HookError(f"{type(hook).__name__}: give iterations or time, not '{parsed}'.")
    return parsed


def moment_of(hook: Hook, argument: str, moment: int | str) -> Every:
    """Read a moment of a run, in iterations or epochs after its start; 0 is the start."""
    if moment == 0:
        return Every(0, "iters")
    try:
        parsed = Every.parse(moment)
    except ValueError as error:
        raise HookError(f"{type(hook).__name__}: {argument}: {error}") from error
    if parsed.unit not in ("iters", "epochs"):
        raise HookError(
            f"{type(hook).__name__}: {argument} counts iterations or epochs, '{parsed}' does not."
        )
    return parsed
