"""``vissl.utils.perf_stats``: the times of parts of an iteration."""

from __future__ import annotations

from time import perf_counter
from typing import Self

import torch


class PerfMetric:
    """A running mean, after a warm-up in which the values move it quickly.

    Attributes:
        EMA_FACTOR: Share of a new value later on.
    """

    EMA_FACTOR = 0.1

    def __init__(self) -> None:
        self.last_value = 0.0
        self.moving_avg = 0.0
        self.mean = 0.0
        self.n = 0

    def update(self, value: float) -> None:
        """Add a value."""
        self.n += 1
        self.last_value = value
        self.mean += (value - self.mean) / self.n
        share = max(self.EMA_FACTOR, 1 / self.n)
        self.moving_avg += (value - self.moving_avg) * share

    def get_avg(self) -> float:
        """Return the mean of all values."""
        return self.mean


class PerfStats:
    """Mean times by the name of a part.

    Args:
        use_cuda_events: Whether to wait for the GPU at the end of each part, so that its work
            counts; without CUDA there is nothing to wait for.
    """

    def __init__(self, use_cuda_events: bool = True) -> None:
        self._wanted = use_cuda_events
        self._host_stats: dict[str, PerfMetric] = {}

    def update_with_timer(self, timer: PerfTimer) -> None:
        """Add the last interval of a timer."""
        self._host_stats.setdefault(timer.name, PerfMetric()).update(timer.last_interval)

    def use_cuda_events(self) -> bool:
        """Return whether the work of the GPU counts."""
        return self._wanted and torch.cuda.is_available()

    def report_str(self) -> str:
        """Return a table of the mean times in milliseconds."""
        width = max(map(len, self._host_stats), default=0) + 4
        rows = [f"{name:>{width}}: {one.get_avg() * 1000:7.2f} ms" for name, one in self._items()]
        return "\n".join([f"{'Timer':>{width}}  {'Host':>7}", *rows])

    def _items(self) -> list[tuple[str, PerfMetric]]:
        return list(self._host_stats.items())

    def __str__(self) -> str:
        return self.report_str()


class PerfTimer:
    """Measure a ``with`` block, or the time from `start` to `stop`; `record` reports it.

    Args:
        timer_name: The name of the part.
        perf_stats: Where to report; None for nowhere.
    """

    def __init__(self, timer_name: str, perf_stats: PerfStats | None) -> None:
        self.name = timer_name
        self.last_interval = 0.0
        self._perf_stats = perf_stats
        self._began: float | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self.stop()
        if kind is None:  # The time of a part that failed says nothing.
            self.record()

    def start(self) -> None:
        """Begin an interval."""
        self._began = perf_counter()

    def stop(self) -> None:
        """End the interval."""
        if self._began is None:
            raise RuntimeError(f"The timer '{self.name}' was not started.")
        if self._perf_stats is not None and self._perf_stats.use_cuda_events():
            torch.cuda.synchronize()
        self.last_interval = perf_counter() - self._began
        self._began = None

    def record(self) -> None:
        """Report the last interval."""
        if self._perf_stats is not None:
            self._perf_stats.update_with_timer(self)
