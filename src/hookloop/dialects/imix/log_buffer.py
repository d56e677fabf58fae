"""`LogBufferStorage`: the numbers that iMIX's hooks pass to each other and to its loggers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from statistics import fmean, median
from typing import TYPE_CHECKING

from torch import Tensor

from hookloop.dialects.waiting import Waiting
from hookloop.errors import HookError, nearest
from hookloop.metrics.series import Value

if TYPE_CHECKING:
    from hookloop.core.run import Run

LOSS = "loss"

# A context variable, so that runs in several threads do not see each other's buffer.
_current: ContextVar[LogBufferStorage | None] = ContextVar("imix_log_buffer", default=None)


class HistoryBuffer:
    """The values of one scalar, with the iteration of each.

    Args:
        max_length: Number of values to keep.
    """

    def __init__(self, max_length: int = 2**20) -> None:
        self._values: deque[tuple[float, float]] = deque(maxlen=max_length)
        # The mean is over all values, including those that the deque has dropped.
        self._count = 0
        self._sum = 0.0

    def update(self, value: float, iteration: float | None = None) -> None:
        """Add a value."""
        self._values.append((float(value), self._count if iteration is None else iteration))
        self._count += 1
        self._sum += float(value)

    def extend(self, values: Sequence[float], first: int) -> None:
        """Add a value for each of several consecutive iterations."""
        self._values.extend(zip(values, range(first, first + len(values)), strict=True))
        self._count += len(values)
        self._sum += sum(values)

    def latest(self) -> float:
        """Return the newest value."""
        return self._values[-1][0]

    def avg(self, window_size: int) -> float:
        """Return the mean of the newest values."""
        return fmean(self._newest(window_size))

    def median(self, window_size: int) -> float:
        """Return the median of the newest values."""
        return median(self._newest(window_size))

    def global_mean(self) -> float:
        """Return the mean of all values that were ever added."""
        return self._sum / self._count

    def values(self) -> list[tuple[float, float]]:
        """Return the values with their iterations."""
        return list(self._values)

    def _newest(self, count: int) -> list[float]:
        return [value for value, _ in list(self._values)[-count:]]


class LogBufferStorage:
    """Scalars by name: those of the current iteration, and their histories.

    The run's metric store gets them too, as ``train/<name>``.

    Args:
        run: The run.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self.iter = 0
        self._latest: dict[str, float] = {}
        self._waiting = Waiting()
        self._first: int | None = None
        self._histories: dict[str, HistoryBuffer] = {}
        self._hints: dict[str, bool] = {}
        self._prefix = ""
        self.images: list[tuple[str, object, int]] = []
        self.histograms: list[tuple[str, object, int]] = []

    def put_scalar(
        self, name: str, data: float | Tensor, smoothing_hint: bool = True, is_epoch: bool = False
    ) -> None:
        """Add a number; the hint, whether loggers may smooth it, must not change."""
        value = float(data.detach()) if isinstance(data, Tensor) else float(data)
        name = f"{self._prefix}{name}"
        assert self._hints.setdefault(name, smoothing_hint) == smoothing_hint, (
            f"'{name}' was put with another smoothing_hint before"
        )
        self._histories.setdefault(name, HistoryBuffer()).update(value, self.iter)
        self._latest[name] = value
        self._run.metrics.put(f"train/{name}", value)

    def put_scalars(
        self, *, smoothing_hint: bool = True, is_epoch: bool = False, **scalars: float | Tensor
    ) -> None:
        """Add several numbers."""
        for name, value in scalars.items():
            self.put_scalar(name, value, smoothing_hint, is_epoch)

    def put_image(self, name: str, tensor: object) -> None:
        """Add a picture for the loggers that show pictures."""
        self.images.append((name, tensor, self.iter))

    def put_histogram(self, name: str, tensor: object, bins: int = 1000) -> None:
        """Add numbers whose distribution loggers may show."""
        self.histograms.append((name, tensor, self.iter))

    def history(self, name: str) -> HistoryBuffer:
        """Return the history of a scalar."""
        self._read()
        if name not in self._histories:
            raise KeyError(f"no hook has put '{name}'.{nearest(name, self._histories)}")
        return self._histories[name]

    def histories(self) -> dict[str, HistoryBuffer]:
        """Return all histories."""
        self._read()
        return dict(self._histories)

    @property
    def latest(self) -> dict[str, float]:
        """The scalars of the current iteration."""
        self._read()
        return self._latest

    def put_loss(self, loss: Value) -> None:
        """Add the loss of an iteration; it is read from its device when a hook needs it."""
        if self._first is None:
            self._first = self.iter  # The iteration of the first loss that waits.
        if self._waiting.add(loss):
            self._read()

    def _read(self) -> None:
        numbers = self._waiting.read()
        if not numbers:
            return
        self._hints.setdefault(LOSS, True)
        history = self._histories.setdefault(LOSS, HistoryBuffer())
        first = self._first or 0
        history.extend(numbers, first)  # Every iteration has added one, without gaps.
        # After a step the last loss is an old one.
        if first + len(numbers) - 1 == self.iter:
            self._latest[LOSS] = numbers[-1]
        self._first = None

    def latest_with_smoothing_hint(self, window_size: int = 20) -> dict[str, float]:
        """Return the newest values, as medians where they may be smoothed."""
        return {
            name: self._histories[name].median(window_size) if self._hints[name] else value
            for name, value in self.latest.items()
        }

    @contextmanager
    def name_scope(self, name: str) -> Iterator[None]:
        """Add a prefix to the names that are put within the block.

        In iMIX it is stored and has no effect.
        """
        before, self._prefix = self._prefix, f"{name.rstrip('/')}/"
        try:
            yield
        finally:
            self._prefix = before

    def step(self) -> None:
        """Continue with the next iteration; the current scalars become old."""
        self.iter += 1
        # A new dict: a hook may keep the old one.
        self._latest = {}

    def clear_images(self) -> None:
        """Forget the pictures that a logger has written."""
        self.images = []

    def clear_histograms(self) -> None:
        """Forget the distributions that a logger has written."""
        self.histograms = []


def get_log_buffer() -> LogBufferStorage:
    """Return the buffer of the current run."""
    buffer = _current.get()
    if buffer is None:
        raise HookError("get_log_buffer: no run with hooks of iMIX is in progress.")
    return buffer


def set_log_buffer(buffer: LogBufferStorage) -> None:
    """Set the buffer of the current run."""
    _current.set(buffer)
