"""`LogVariables`: log the epoch's data."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import numpy as np

from hookloop_dialects.emloop.epoch_data import EpochData as OfRun
from hookloop_dialects.emloop.hooks.abstract_hook import AbstractHook
from hookloop_dialects.emloop.types import EpochData

_log = logging.getLogger()  # emloop logs with the root logger.


class LogVariables(AbstractHook):
    """Log numbers and dicts of numbers after each epoch.

    Args:
        variables: Their names; None for all.
        on_unknown_type: What to do with any other value: ``error``, ``warn``, ``ignore``, or
            ``str``, which logs its text.
        kwargs: See `AbstractHook`.
    """

    UNKNOWN_TYPE_ACTIONS = ("error", "warn", "str", "ignore")

    def __init__(
        self,
        variables: Iterable[str] | None = None,
        on_unknown_type: str = "ignore",
        **kwargs: object,
    ) -> None:
        super().__init__(**kwargs)
        assert on_unknown_type in self.UNKNOWN_TYPE_ACTIONS, on_unknown_type
        self._variables = None if variables is None else list(variables)
        self._on_unknown_type = on_unknown_type
        self.reads_epoch_data = tuple(self._variables or ())

    def after_epoch(self, epoch_id: int, epoch_data: EpochData) -> None:
        self._log_variables(epoch_data)

    # A method of emloop's class, which subclasses call and override.
    def _log_variables(self, epoch_data: EpochData) -> None:
        for stream, data in epoch_data.items():
            for name in data if self._variables is None else self._variables:
                if isinstance(epoch_data, OfRun) and epoch_data.leaves_out(stream, name):
                    continue
                if name not in data:
                    raise KeyError(
                        f"the stream '{stream}' has no '{name}' to log. "
                        f"Available: {', '.join(data)}."
                    )
                self._log(stream, name, data[name])

    def _log(self, stream: str, name: str, value: object) -> None:
        # The three forms of lines are emloop's.
        if isinstance(value, dict) and len(value) == 1:
            ((key, inner),) = value.items()
            _log.info("\t%s %s %s: %s", stream, name, key, _text(inner))
        elif isinstance(value, dict):
            _log.info("\t%s %s:", stream, name)
            for key, inner in value.items():
                _log.info("\t\t%s: %s", key, _text(inner))
        elif np.isscalar(value):
            _log.info("\t%s %s: %s", stream, name, _text(value))
        elif self._on_unknown_type == "error":
            raise TypeError(f"'{name}' of type {type(value).__name__} cannot be logged.")
        elif self._on_unknown_type == "warn":
            _log.warning("'%s' of type %s cannot be logged.", name, type(value).__name__)
        elif self._on_unknown_type == "str":
            _log.info("\t%s %s: %s", stream, name, value)


def _text(value: object) -> str:
    """Format a number with six decimals, and anything else as it is."""
    # To np.isscalar a text is a scalar too. emloop's format string fails on it.
    return f"{value:f}" if isinstance(value, int | float | np.number) else str(value)
