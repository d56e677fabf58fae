"""`Benchmark`: log the time per example."""

from __future__ import annotations

import logging

import numpy as np

from hookloop_dialects.emloop.hooks.abstract_hook import AbstractHook
from hookloop_dialects.emloop.types import TimeProfile

_log = logging.getLogger()  # emloop logs with the root logger.


class Benchmark(AbstractHook):
    """Log mean and median of the seconds per example.

    Args:
        batch_size: Examples per batch.
        kwargs: See `AbstractHook`.
    """

    def __init__(self, batch_size: int, **kwargs: object) -> None:
        super().__init__(**kwargs)
        self._batch_size = batch_size

    def after_epoch_profile(self, epoch_id: int, profile: TimeProfile, streams: list[str]) -> None:
        for stream in streams:
            # Without the last batch, which is often smaller than the others.
            times = np.array(profile.get(f"eval_batch_{stream}", [])[:-1]) / self._batch_size
            if times.size:
                _log.info(
                    "%s - time per example: mean=%.5fs, median=%.5fs",
                    stream,
                    times.mean(),
                    np.median(times),
                )
