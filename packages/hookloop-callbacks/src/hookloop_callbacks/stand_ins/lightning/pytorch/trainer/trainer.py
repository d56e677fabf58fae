"""The type of the argument ``trainer``."""

from __future__ import annotations

from typing import Any

from hookloop_callbacks.stand_ins.lightning.pytorch.core import reject


class _PassesFor(type):
    """Lets the facade that a callback is given pass for a Trainer."""

    def __instancecheck__(cls, instance: object) -> bool:
        from hookloop_callbacks.on_lightning.trainer import TrainerFacade

        return isinstance(instance, TrainerFacade) or super().__instancecheck__(instance)


class Trainer(metaclass=_PassesFor):
    """The type of ``trainer``; what trains is ``hookloop.Trainer``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - whatever is given
        reject("Trainer", "hookloop.Trainer")
