"""The place in a schedule, apart from its shape.

A checkpoint holds what has moved since the schedule was built. Given to a schedule that was built
longer, for a run that is to go on for longer, it leads to the same place on the longer curve.
"""

from __future__ import annotations

import copy
from bisect import bisect_right
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from torch import Tensor

from hookloop.checkpoint.shape import is_alike

if TYPE_CHECKING:
    from torch.optim.lr_scheduler import LRScheduler

INNER = "_schedulers"

State = dict[str, object]


class ScheduleState:
    """Remembers how a scheduler was built, to tell its place from its shape.

    Args:
        scheduler: One that has not stepped yet.
    """

    def __init__(self, scheduler: LRScheduler) -> None:
        self._scheduler = scheduler
        self._built: State = copy.deepcopy(scheduler.state_dict())

    def state_dict(self) -> State:
        """Return what moved, and the shape it moved on."""
        moved = _moved(self._built, self._scheduler.state_dict())
        return {"place": moved, "shape": _shape(self._built)}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Go to the place; on another shape, the learning rate becomes what it is there."""
        place = cast("State", state["place"])
        _check(self._scheduler, self._built, place)
        self._scheduler.load_state_dict(_placed(self._built, place))
        if _shape(self._built) != state["shape"]:
            _join_curve(self._scheduler)


def _check(scheduler: object, built: Mapping[str, object], place: Mapping[str, object]) -> None:
    """Reject a place that the schedule cannot be at: torch sets whatever it is given."""
    if not is_alike(place, built) or any(hasattr(type(scheduler), str(name)) for name in place):
        raise ValueError("it is not a place in this schedule")
    inner, saved = built.get(INNER), place.get(INNER)
    if isinstance(inner, list) and isinstance(saved, list):
        for one, theirs, ours in zip(getattr(scheduler, INNER), saved, inner, strict=True):
            _check(one, ours, theirs)


def _moved(built: Mapping[str, object], now: Mapping[str, object]) -> State:
    moved: State = {}
    for key, value in now.items():
        if key == INNER and isinstance(value, list):
            inner = cast("list[State]", built[key])
            moved[key] = [_moved(*pair) for pair in zip(inner, value, strict=True)]
        elif key not in built or isinstance(value, Tensor) or built[key] != value:
            moved[key] = value
    return moved


def _placed(built: Mapping[str, object], place: Mapping[str, object]) -> State:
    combined = {**built, **place}
    inner, saved = built.get(INNER), place.get(INNER)
    if isinstance(inner, list) and isinstance(saved, list):
        combined[INNER] = [_placed(*pair) for pair in zip(inner, saved, strict=True)]
    return combined


def _shape(built: Mapping[str, object]) -> State:
    """Pick the numbers that a user may have changed; functions cannot be compared."""
    shape: State = {}
    for key, value in built.items():
        if key == INNER and isinstance(value, list):
            shape[key] = [_shape(one) for one in value]
        elif isinstance(value, int | float | str) or (
            isinstance(value, list) and all(isinstance(one, int | float) for one in value)
        ):
            shape[key] = value
    return shape


def _join_curve(scheduler: LRScheduler) -> None:
    """Set the learning rates to where the curve is now.

    Some schedulers compute a step from the one before. Continued on another curve they would keep
    the old one's height: a cosine that had come down to zero would stay there for ever.
    """
    inner = getattr(scheduler, INNER, None)
    milestones = getattr(scheduler, "_milestones", None)
    if inner and milestones is not None:
        _join_curve(inner[bisect_right(milestones, scheduler.last_epoch)])
        return
    closed_form = getattr(scheduler, "_get_closed_form_lr", None)
    if closed_form is not None:
        rates = closed_form()
        for group, rate in zip(scheduler.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        scheduler._last_lr = rates
