"""`Check`: require a value by a certain epoch."""

from __future__ import annotations

from typing import cast

import numpy as np

from hookloop_dialects.emloop.hooks.abstract_hook import AbstractHook, TrainingTerminated
from hookloop_dialects.emloop.hooks.save import entry
from hookloop_dialects.emloop.types import EpochData


class Check(AbstractHook):
    """End the training when a variable is large enough; fail if it is not by a certain epoch.

    Args:
        variable: A number in the epoch's data, or a dict with its ``mean``.
        required_min_value: The value that it must exceed.
        max_epoch: The last epoch in which it may be too small.
        stream: The stream to check.
        kwargs: See `AbstractHook`.
    """

    ends_training = True

    def __init__(
        self,
        variable: str,
        required_min_value: float,
        max_epoch: int,
        stream: str = "valid",
        **kwargs: object,
    ) -> None:
        super().__init__(**kwargs)
        self._variable = variable
        self._required_min_value = required_min_value
        self._max_epoch = max_epoch
        self._stream = stream
        self.reads_epoch_data = (variable,)  # Lets the dialect check the order of hooks.

    def after_epoch(self, epoch_id: int, epoch_data: EpochData) -> None:
        value = entry(epoch_data, self._stream, self._variable)
        if isinstance(value, dict) and "mean" in value:
            value = value["mean"]
        if not np.isscalar(value):
            raise TypeError(f"'{self._variable}' is not a single number and has no mean.")
        found, name = cast("float", value), f"{self._stream} {self._variable}"
        if found > self._required_min_value:
            raise TrainingTerminated(f"{name} is {found:g}, above {self._required_min_value:g}")
        # Not TrainingTerminated: in emloop such a run fails.
        if epoch_id >= self._max_epoch:
            raise ValueError(
                f"{name} is {found:g} after epoch {epoch_id}, but more than "
                f"{self._required_min_value:g} is required."
            )
