"""`StopOnNaN`: end the training when a variable is NaN."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from hookloop_dialects.emloop.hooks.abstract_hook import AbstractHook, TrainingTerminated
from hookloop_dialects.emloop.types import Batch, EpochData

_log = logging.getLogger()  # emloop logs with the root logger.


class StopOnNaN(AbstractHook):
    """End the training successfully when a variable contains NaN.

    Args:
        variables: Their names; None for all.
        on_unknown_type: What to do with a value that cannot be checked: ``error``, ``warn``,
            ``ignore``.
        stop_on_inf: Whether infinity counts as NaN.
        after_batch: Whether to check the variables of each batch.
        after_epoch: Whether to check the epoch's data.
        kwargs: See `AbstractHook`.
    """

    UNKNOWN_TYPE_ACTIONS = ("error", "warn", "ignore")

    def __init__(
        self,
        variables: Iterable[str] | None = None,
        on_unknown_type: str = "ignore",
        stop_on_inf: bool = False,
        after_batch: bool = False,
        after_epoch: bool = True,
        **kwargs: object,
    ) -> None:
        super().__init__(**kwargs)
        assert after_batch or after_epoch, "set after_batch or after_epoch"
        assert on_unknown_type in self.UNKNOWN_TYPE_ACTIONS, on_unknown_type
        self._variables = None if variables is None else list(variables)
        self._on_unknown_type = on_unknown_type
        self._stop_on_inf = stop_on_inf
        self._after_batch = after_batch
        self._after_epoch = after_epoch
        # Set only if the epoch's data is read, since it fixes the order of hooks. Empty means that
        # the hook reads every variable.
        if after_epoch:
            self.reads_epoch_data = tuple(self._variables or ())

    def after_batch(self, stream_name: str, batch_data: Batch) -> None:
        if self._after_batch:
            self._check_nan({stream_name: batch_data})

    def after_epoch(self, epoch_data: EpochData, **_: object) -> None:
        if self._after_epoch:
            self._check_nan(epoch_data)

    def _check_nan(self, data: Mapping[str, Mapping[str, Any]]) -> None:
        for stream, values in data.items():
            for name in values if self._variables is None else self._variables:
                if name not in values:
                    raise KeyError(
                        f"the stream '{stream}' has no '{name}' to check. "
                        f"Available: {', '.join(values)}."
                    )
                if self._is_nan(name, values[name]):
                    raise TrainingTerminated(f"'{name}' of the stream '{stream}' is NaN")

    def _is_nan(self, name: str, value: object) -> bool:
        if isinstance(value, dict):
            return any(self._is_nan(key, inner) for key, inner in value.items())
        if isinstance(value, np.ndarray | list) or np.isscalar(value):
            numbers = np.asarray(value)
            # emloop uses Python's any() instead, which fails on arrays of two dimensions.
            if numbers.dtype.kind in "biufc":
                has_nan = np.isnan(numbers).any()
                return bool(has_nan or (self._stop_on_inf and np.isinf(numbers).any()))
        message = f"'{name}' of type {type(value).__name__} cannot be checked for NaN."
        if self._on_unknown_type == "error":
            raise ValueError(message)
        if self._on_unknown_type == "warn":
            _log.warning(message)
        return False
