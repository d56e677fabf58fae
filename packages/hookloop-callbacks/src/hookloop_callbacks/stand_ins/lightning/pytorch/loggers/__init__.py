"""``lightning.pytorch.loggers``: types for annotations and ``isinstance``.

What a callback finds in ``trainer.logger`` has the methods of TensorBoard's writer and passes for
that logger.
"""

from __future__ import annotations

from hookloop_callbacks.on_lightning.loggers import LoggerView


class _PassesFor(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, LoggerView) or super().__instancecheck__(instance)


class Logger(metaclass=_PassesFor):
    """The type of ``trainer.logger``."""


class TensorBoardLogger(Logger):
    """A logger whose ``experiment`` is TensorBoard's writer."""


class _NeverHere(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return False


class WandbLogger(metaclass=_NeverHere):
    """Not the type of ``trainer.logger`` here."""


class CSVLogger(metaclass=_NeverHere):
    """Not the type of ``trainer.logger`` here."""


class MLFlowLogger(metaclass=_NeverHere):
    """Not the type of ``trainer.logger`` here."""


__all__ = ["CSVLogger", "Logger", "MLFlowLogger", "TensorBoardLogger", "WandbLogger"]
