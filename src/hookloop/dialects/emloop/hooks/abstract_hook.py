"""`AbstractHook`: the base class of emloop's hooks, with its five events."""

from __future__ import annotations

import inspect
import logging
from typing import Any

from hookloop.dialects.emloop.types import TimeProfile, TrainingTerminated

_log = logging.getLogger("emloop")

__all__ = ["AbstractHook", "TrainingTerminated"]


class AbstractHook:
    """A hook of emloop; a subclass overrides the events that it needs.

    Args:
        kwargs: ``model``, ``dataset`` and ``output_dir``, which emloop gives to every hook; for
            anything else a warning names the arguments that are known.
    """

    EL_HOOK_INIT_ARGS = frozenset({"model", "dataset", "output_dir"})

    def __init__(self, **kwargs: object) -> None:
        for name in kwargs.keys() - self.EL_HOOK_INIT_ARGS:
            known = ", ".join(inspect.signature(type(self)).parameters)
            _log.warning("%s has no argument '%s'; it takes %s.", type(self).__name__, name, known)
        self._main_loop: object = None

    def before_training(self) -> None:
        """Act once, before anything is computed."""

    # Open, because emloop's hooks override them with those arguments that they need.

    def after_batch(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - see above
        """Act after each batch, by keyword: ``stream_name`` and ``batch_data``, which is shared."""

    def after_epoch(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - see above
        """Act after all streams, by keyword: ``epoch_id`` and ``epoch_data``, which is shared."""

    def after_epoch_profile(self, epoch_id: int, profile: TimeProfile, streams: list[str]) -> None:
        """Look at where the time of an epoch went."""

    def after_training(self, success: bool) -> None:
        """Act once, at the end, however it came."""

    def register_mainloop(self, main_loop: object) -> None:
        """Take the main loop, once."""
        if self._main_loop is not None:
            raise ValueError(f"{type(self).__name__} belongs to a main loop already.")
        self._main_loop = main_loop
