"""What iMIX's hooks are and hold: whether one makes the update, its scalers and its schedulers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import CodeType
from typing import cast

from torch.amp import GradScaler
from torch.optim.lr_scheduler import LRScheduler

OPTIMIZER_HOOKS = ("OptimizerHook", "Fp16OptimizerHook")

Stateful = GradScaler | LRScheduler


def makes_update(foreign: object) -> bool:
    """Return whether a hook makes backward and update: declared, by its base class, or by its code.

    A hook that hides its calls in other functions declares ``makes_update = True``.
    """
    declared = getattr(foreign, "makes_update", None)
    if isinstance(declared, bool):
        return declared
    kinds = [kind for kind in type(foreign).__mro__ if kind.__name__ != "HookBase"]
    if any(kind.__name__ in OPTIMIZER_HOOKS for kind in kinds):
        return True
    names = {name for kind in kinds for name in _names(kind)}
    return {"backward", "step"} <= names


def _names(kind: type) -> Iterator[str]:
    for value in vars(kind).values():
        code = getattr(value, "__code__", None)
        if isinstance(code, CodeType):
            yield from code.co_names


def stateful_parts(foreign: object) -> dict[str, Stateful]:
    """Return the scalers and schedulers among the attributes of a hook."""
    return {name: part for name, part in vars(foreign).items() if isinstance(part, Stateful)}


def save_parts(foreign: object) -> dict[str, object]:
    """Return the states of those, for a hook that has no state of its own."""
    parts = stateful_parts(foreign)
    states = {name: cast("dict[str, object]", part.state_dict()) for name, part in parts.items()}
    return {name: state for name, state in states.items() if state}  # Of a disabled one it is {}.


def restore_parts(foreign: object, states: Mapping[str, object]) -> None:
    """Restore what `save_parts` returned."""
    for name, part in stateful_parts(foreign).items():
        if name in states:
            part.load_state_dict(dict(cast("Mapping[str, object]", states[name])))
