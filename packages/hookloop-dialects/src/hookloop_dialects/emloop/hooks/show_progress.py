"""`ShowProgress`: show the progress of the current stream."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from time import monotonic

from hookloop_dialects.emloop.hooks.abstract_hook import AbstractHook
from hookloop_dialects.emloop.types import Batch

WIDTH = 40


class ShowProgress(AbstractHook):
    """Show on a terminal how much of the stream is done and the time left for the rest.

    Args:
        dataset: May have ``num_batches``, the number of batches by stream. Otherwise they are
            counted in the first epoch.
        kwargs: See `AbstractHook`.
    """

    def __init__(self, dataset: object = None, **kwargs: object) -> None:
        super().__init__(**kwargs)
        totals = getattr(dataset, "num_batches", None)
        self._totals: dict[str, int] = dict(totals) if isinstance(totals, Mapping) else {}
        self._counts: Counter[str] = Counter()
        self._began = (monotonic(), "")

    def after_batch(self, stream_name: str, batch_data: Batch) -> None:
        # The time left is estimated per stream, since training is slower than evaluation.
        if self._began[1] != stream_name:
            self._began = (monotonic(), stream_name)
        self._counts[stream_name] += 1
        self._show(self._line(stream_name))

    def after_epoch(self, **_: object) -> None:
        # Counted once: a later epoch that a hook cuts short must not change the totals.
        self._totals = self._totals or dict(self._counts)
        self._counts.clear()
        self._began = (monotonic(), "")
        self._show("")

    def _line(self, stream: str) -> str:
        done, total = self._counts[stream], self._totals.get(stream)
        if not total:
            return f"{stream}: {done}"
        filled = min(WIDTH, WIDTH * done // total)
        left = timedelta(seconds=round((monotonic() - self._began[0]) / done * (total - done)))
        bar = "=" * filled + "-" * (WIDTH - filled)
        return f"{stream}: |{bar}| {done}/{total}={100 * done / total:.1f}% {left}"

    def _show(self, line: str) -> None:
        if sys.stdout.isatty():  # In a log file each update would be a line of its own.
            sys.stdout.write(f"\r\x1b[2K{line}")
            sys.stdout.flush()
