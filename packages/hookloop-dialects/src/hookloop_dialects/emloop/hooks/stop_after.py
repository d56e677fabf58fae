"""`StopAfter`: end the training after a number of epochs, iterations or minutes."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from time import monotonic
from typing import cast

from hookloop_dialects.emloop.constants import EL_DEFAULT_TRAIN_STREAM
from hookloop_dialects.emloop.hooks.abstract_hook import AbstractHook, TrainingTerminated
from hookloop_dialects.emloop.types import Batch, EpochData

_log = logging.getLogger()  # emloop logs with the root logger.


class StopAfter(AbstractHook):
    """End the training at the first limit that is reached.

    Args:
        epochs: Limit in epochs, checked after each.
        iterations: Limit in batches of the training stream, the zeroth epoch included.
        minutes: Limit in minutes since the training began, checked after each batch and epoch.
        train_stream_name: The stream whose batches are counted.
        kwargs: See `AbstractHook`.
    """

    ends_training = True

    def __init__(
        self,
        epochs: int | None = None,
        iterations: int | None = None,
        minutes: float | None = None,
        train_stream_name: str = EL_DEFAULT_TRAIN_STREAM,
        **kwargs: object,
    ) -> None:
        super().__init__(**kwargs)
        if epochs is None and iterations is None and minutes is None:
            raise ValueError("StopAfter needs a limit: set epochs, iterations or minutes.")
        self._epochs = epochs
        self._iters = iterations
        self._minutes = minutes
        self._train_stream_name = train_stream_name
        self._iters_done = 0
        # Of the runs before a resume; emloop starts to count again.
        self._seconds_before = 0.0
        self._training_start = monotonic()

    def state_dict(self) -> dict[str, object]:
        return {"iterations": self._iters_done, "seconds": self._seconds()}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        self._iters_done = cast("int", state["iterations"])
        self._seconds_before = cast("float", state["seconds"])

    def before_training(self) -> None:
        self._training_start = monotonic()

    def after_batch(self, stream_name: str, batch_data: Batch) -> None:
        self._check_train_time()
        if self._iters is not None and stream_name == self._train_stream_name:
            self._iters_done += 1
            if self._iters_done >= self._iters:
                raise TrainingTerminated(f"{self._iters_done} iterations are done")

    def after_epoch(self, epoch_id: int, epoch_data: EpochData) -> None:
        self._check_train_time()
        if self._epochs is not None and epoch_id >= self._epochs:
            # The text of emloop's own log, though no hook has this name.
            _log.info("EpochStopperHook triggered")
            raise TrainingTerminated(f"{epoch_id} epochs are done")

    def _check_train_time(self) -> None:
        if self._minutes is not None and self._seconds() > 60 * self._minutes:
            raise TrainingTerminated(f"more than {self._minutes:g} minutes have passed")

    def _seconds(self) -> float:
        return self._seconds_before + monotonic() - self._training_start
