"""`LogDir`: log the output directory."""

from __future__ import annotations

import logging

from hookloop_dialects.emloop.hooks.abstract_hook import AbstractHook

_log = logging.getLogger()  # emloop logs with the root logger.


class LogDir(AbstractHook):
    """Log the output directory at the start, after each epoch and at the end.

    Args:
        output_dir: The directory.
        kwargs: See `AbstractHook`.
    """

    def __init__(self, output_dir: str, **kwargs: object) -> None:
        super().__init__(**kwargs)
        self._output_dir = output_dir

    def _log(self) -> None:
        _log.info("Output dir: %s", self._output_dir)

    def before_training(self) -> None:
        self._log()

    def after_epoch(self, **_: object) -> None:
        self._log()

    def after_training(self, success: bool) -> None:
        self._log()
