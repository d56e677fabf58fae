"""`AbstractHook`: the base class of emloop's hooks, with five events."""

from __future__ import annotations

import inspect
import logging
from typing import Any

from hookloop_dialects.emloop import types
from hookloop_dialects.emloop.types import TimeProfile, TrainingTerminated

_log = logging.getLogger()  # emloop logs with the root logger.

__all__ = ["AbstractHook", "TrainingTerminated"]


class AbstractHook:
    """A hook of emloop; a subclass overrides the events that it needs.

    Args:
        kwargs: ``model``, ``dataset`` and ``output_dir``, which emloop passes to every hook.
            Anything else is ignored with a warning that lists the accepted arguments.
    """

    EL_HOOK_INIT_ARGS = frozenset({"model", "dataset", "output_dir"})
    EpochData = types.EpochData  # Where the first versions of cxflow have it.

    def __init__(self, **kwargs: object) -> None:
        # A warning, as in emloop: an error would break configs that run there.
        for name in kwargs.keys() - self.EL_HOOK_INIT_ARGS:
            accepted = ", ".join(inspect.signature(type(self)).parameters)
            kind = type(self).__name__
            _log.warning("%s has no argument '%s'; it takes %s.", kind, name, accepted)
        self._main_loop: object = None

    def before_training(self) -> None:
        """Act once, before anything is computed."""

    # These two accept anything, because subclasses override them with the arguments they need.

    def after_batch(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - see above
        """Act after each batch; the keywords are ``stream_name`` and ``batch_data``."""

    def after_epoch(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - see above
        """Act after all streams; the keywords are ``epoch_id`` and ``epoch_data``."""

    def after_epoch_profile(self, epoch_id: int, profile: TimeProfile, streams: list[str]) -> None:
        """Inspect where the time of an epoch went."""

    def after_training(self, success: bool) -> None:
        """Act once, at the end of a training or after its failure."""

    def register_mainloop(self, main_loop: object) -> None:
        """Set the main loop, once."""
        # A hook keeps state of its training, so it cannot serve two.
        if self._main_loop is not None:
            raise ValueError(f"{type(self).__name__} belongs to a main loop already.")
        self._main_loop = main_loop
