"""The state of a learning-rate schedule: its position, apart from its shape.

A checkpoint holds what has changed since the schedule was built. Loaded into a schedule that was
built for a longer run, it leads to the same position on the longer curve.
"""

from __future__ import annotations

import copy
from bisect import bisect_right
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from torch import Tensor

from hookloop.checkpoint.state.shape import has_same_form
from hookloop.objects.values import is_plain

if TYPE_CHECKING:
    from torch.optim.lr_scheduler import LRScheduler

INNER, FUNCTIONS = "_schedulers", "lr_lambdas"

State = dict[str, object]


class ScheduleState:
    """Remembers how a scheduler was built, to separate its position from its shape.

    Args:
        scheduler: One that has not stepped yet.
    """

    def __init__(self, scheduler: LRScheduler) -> None:
        self._scheduler = scheduler
        # A copy, because the state_dict of a scheduler shares its lists with the scheduler.
        self._built: State = copy.deepcopy(_storable(scheduler.state_dict()))

    def state_dict(self) -> State:
        """Return what has changed, and the shape that it belongs to."""
        changed = _changed(self._built, _storable(self._scheduler.state_dict()))
        # The position is under "place" in every checkpoint so far, so the key stays.
        return {"place": changed, "shape": _shape(self._built)}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Go to the position; on another shape, set the learning rate of that position."""
        position = cast("State", state["place"])
        _check(self._scheduler, self._built, position)
        self._scheduler.load_state_dict(_merged(self._built, position))
        if _shape(self._built) != state["shape"]:
            join_curve(self._scheduler)


def _check(scheduler: object, built: Mapping[str, object], position: Mapping[str, object]) -> None:
    """Reject a position that the schedule cannot have."""
    # torch sets an attribute for every entry, so an entry named like a method would replace it.
    is_method = any(hasattr(type(scheduler), str(name)) for name in position)
    if not has_same_form(position, built) or is_method:
        raise ValueError("it is not a position in this schedule")
    inner, saved = built.get(INNER), position.get(INNER)
    if isinstance(inner, list) and isinstance(saved, list):
        for part, theirs, ours in zip(getattr(scheduler, INNER), saved, inner, strict=True):
            _check(part, ours, theirs)


def _storable(state: Mapping[str, object]) -> State:
    """Leave out what no file can hold; it counts as undeclared state."""
    found: State = {}
    for key, value in state.items():
        if key == INNER and isinstance(value, list):
            found[key] = [_storable(inner) for inner in value]
        elif key == FUNCTIONS and isinstance(value, list):  # As torch does for plain functions.
            found[key] = [one if is_plain(one) else None for one in value]
        elif is_plain(value):
            found[key] = value
    return found


def _changed(built: Mapping[str, object], now: Mapping[str, object]) -> State:
    changed: State = {}
    for key, value in now.items():
        if key == INNER and isinstance(value, list):
            inner = cast("list[State]", built[key])
            changed[key] = [_changed(*pair) for pair in zip(inner, value, strict=True)]
        # A comparison of tensors is a tensor and not a bool, so they are always kept.
        elif key not in built or isinstance(value, Tensor) or built[key] != value:
            changed[key] = value
    return changed


def _merged(built: Mapping[str, object], position: Mapping[str, object]) -> State:
    combined = {**built, **position}
    inner, saved = built.get(INNER), position.get(INNER)
    if isinstance(inner, list) and isinstance(saved, list):
        combined[INNER] = [_merged(*pair) for pair in zip(inner, saved, strict=True)]
    return combined


def _shape(built: Mapping[str, object]) -> State:
    """Pick the numbers that a user may have changed; functions cannot be compared."""
    shape: State = {}
    for key, value in built.items():
        if key == INNER and isinstance(value, list):
            shape[key] = [_shape(inner) for inner in value]
        elif isinstance(value, int | float | str) or (
            isinstance(value, list) and all(isinstance(number, int | float) for number in value)
        ):
            shape[key] = value
    return shape


def join_curve(scheduler: LRScheduler) -> bool:
    """Set the learning rates to the current point of the curve; return whether it has a formula.

    Some schedulers compute a step from the one before. Continued on another curve they would keep
    the height of the old one: a cosine that had reached zero would stay there forever.
    """
    inner = getattr(scheduler, INNER, None)
    milestones = getattr(scheduler, "_milestones", None)
    if inner and milestones is not None:
        # Only the active part of a sequence sets the rate.
        return join_curve(inner[bisect_right(milestones, scheduler.last_epoch)])
    closed_form = getattr(scheduler, "_get_closed_form_lr", None)
    if closed_form is None:
        return False
    rates = closed_form()
    for group, rate in zip(scheduler.optimizer.param_groups, rates, strict=True):
        group["lr"] = rate
    scheduler._last_lr = rates
    return True
