"""`LogVariables`: the epoch's data in the log."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import numpy as np

from hookloop.dialects.emloop.hooks.abstract_hook import AbstractHook
from hookloop.dialects.emloop.types import EpochData

_log = logging.getLogger("emloop")


class LogVariables(AbstractHook):
    """Log numbers and dicts of numbers after each epoch.

    Args:
        variables: Which; all when not given.
        on_unknown_type: What to do with any other value: ``error``, ``warn``, ``str`` logs its
            text, ``ignore``.
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
        for stream, data in epoch_data.items():
            for name in data if self._variables is None else self._variables:
                if name not in data:
                    raise KeyError(
                        f"there is no '{name}' of the stream '{stream}' to log; there are: "
                        f"{', '.join(data)}."
                    )
                self._log(stream, name, data[name])

    def _log(self, stream: str, name: str, value: object) -> None:
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
    """Write a number with six decimals; text, which emloop fails on, as it is."""
    return f"{value:f}" if isinstance(value, int | float | np.number) else str(value)
