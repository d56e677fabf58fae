"""`HookBase`: the base class of iMIX's hooks, and `PriorityStatus`, their levels."""

from __future__ import annotations

import logging
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hookloop_dialects.imix.trainer import EngineFacade

_log = logging.getLogger("imix")


class PriorityStatus(Enum):
    """The levels; hooks with a lower number act earlier."""

    HIGHEST = 0
    HIGHER = 10
    HIGH = 20
    NORMAL = 30
    LOW = 40
    LOWER = 50
    LOWEST = 60


class HookBase:
    """A hook; a subclass overrides the stages that it needs. ``trainer`` is the engine."""

    trainer: EngineFacade
    _level = PriorityStatus.NORMAL

    @property
    def level(self) -> PriorityStatus:
        """The hook's position among the others of a stage."""
        return self._level

    @level.setter
    def level(self, level: PriorityStatus | int | str) -> None:
        self._level = read_level(level)

    def before_train(self) -> None:
        """Act before the training."""

    def after_train(self) -> None:
        """Act after the training, also when it failed."""

    def before_train_epoch(self) -> None:
        """Act before an epoch."""

    def after_train_epoch(self) -> None:
        """Act after an epoch."""

    def before_train_iter(self) -> None:
        """Act before an iteration; its batch is read already."""

    def after_train_iter(self) -> None:
        """Act after an iteration."""


def read_level(level: PriorityStatus | int | str) -> PriorityStatus:
    """Return a level given as a member of the enum, its number or its name; NORMAL otherwise.

    >>> read_level(40), read_level("high")
    (<PriorityStatus.LOW: 40>, <PriorityStatus.HIGH: 20>)
    """
    if isinstance(level, PriorityStatus):
        return level
    # iMIX documents names as well, but raises on them.
    if isinstance(level, str) and level.strip().upper() in PriorityStatus.__members__:
        return PriorityStatus[level.strip().upper()]
    # False equals 0, which would be HIGHEST.
    if isinstance(level, int) and not isinstance(level, bool):
        for status in PriorityStatus:
            if status.value == level:
                return status
    levels = ", ".join(f"{status.name} {status.value}" for status in PriorityStatus)
    # A warning, as in iMIX; an error would break configs that run there.
    _log.warning("%r is not a level, so the hook gets NORMAL. Levels: %s.", level, levels)
    return PriorityStatus.NORMAL
