"""`LogBufferStorage`: the numbers that iMIX's hooks pass to each other and to its loggers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, Token
from statistics import fmean, median
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import torch
from torch import Tensor

from hookloop.dialects import Waiting
from hookloop.errors import HookError, nearest

if TYPE_CHECKING:
    from hookloop import Run

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

    def extend(self, values: Sequence[float], iterations: Sequence[int]) -> None:
        """Add several values with their iterations."""
        self._values.extend(zip(values, iterations, strict=True))
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

    @property
    def global_mean(self) -> float:
        """The mean of all values that were ever added."""
        return self._sum / self._count

    def global_avg(self) -> float:
        """Return the same, under an older name."""
        return self.global_mean

    def values(self) -> list[tuple[float, float]]:
        """Return the values with their iterations."""
        return list(self._values)

    def _newest(self, count: int) -> list[float]:
        return [value for value, _ in list(self._values)[-count:]]


class Picture(NamedTuple):
    """A picture that waits for a logger."""

    name: str
    data: object
    iter_idx: int


class Pictures:
    """The pictures that wait for a logger."""

    def __init__(self) -> None:
        self.images: list[Picture] = []

    def __len__(self) -> int:
        return len(self.images)

    def append(self, name: str, data: object, iter_idx: int = 0) -> None:
        """Add a picture."""
        self.images.append(Picture(name, data, iter_idx))

    def clear(self) -> None:
        """Forget all."""
        self.images = []


class Histograms:
    """The distributions that wait for a logger, as arguments of ``add_histogram_raw``.

    Args:
        bins: The number of bins.
    """

    def __init__(self, bins: int = 800) -> None:
        self.bins = bins
        self.histograms: list[dict[str, Any]] = []

    def __len__(self) -> int:
        return len(self.histograms)

    def append(self, name: str, data: Tensor | Sequence[float], iter_idx: int = 0) -> None:
        """Add the distribution of some numbers."""
        numbers = torch.as_tensor(data).detach().float().cpu()
        low, high = float(numbers.min()), float(numbers.max())
        self.histograms.append(
            {
                "tag": name,
                "min": low,
                "max": high,
                "num": len(numbers),
                "sum": float(numbers.sum()),
                "sum_squares": float((numbers**2).sum()),
                "bucket_limits": torch.linspace(low, high, self.bins + 1)[1:].tolist(),
                "bucket_counts": torch.histc(numbers, self.bins).tolist(),
                "global_step": iter_idx,
            }
        )

    def clear(self) -> None:
        """Forget all."""
        self.histograms = []


class LogBufferStorage:
    """Scalars by name: those of the current iteration, and their histories.

    The run's metric store gets them too, as ``train/<name>``. Within ``with LogBufferStorage():``
    hooks find another buffer than the run's.

    Args:
        start_iter: The first iteration.
        single_epoch_iters: Iterations per epoch.
        start_epoch: The first epoch.
        by_epoch: Whether the training is counted in epochs.
        run: The run, if there is one.
    """

    def __init__(
        self,
        start_iter: int = 0,
        single_epoch_iters: int = 0,
        start_epoch: int = 0,
        by_epoch: bool = True,
        *,
        run: Run | None = None,
    ) -> None:
        self.run = run
        self.start_iter = self.iter = start_iter
        self.epoch = start_epoch
        self.epoch_inner_iter = 0
        self.single_epoch_iters = single_epoch_iters
        self.by_epoch = by_epoch
        self._latest: dict[str, float] = {}
        self._waiting: dict[str, tuple[Waiting, list[int]]] = {}
        self._token: Token[LogBufferStorage | None] | None = None
        self._histories: dict[str, HistoryBuffer] = {}
        self._hints: dict[str, bool] = {}
        self._prefix = ""
        self.vis_data = Pictures()
        self.histograms = Histograms()

    def __enter__(self) -> Self:
        self._token = _current.set(self)
        return self

    def __exit__(self, *error: object) -> None:
        if self._token is not None:
            _current.reset(self._token)

    def put_scalar(
        self, name: str, data: float | Tensor, smoothing_hint: bool = True, is_epoch: bool = False
    ) -> None:
        """Add a number; the hint, whether loggers may smooth it, must not change."""
        value = float(data.detach()) if isinstance(data, Tensor) else float(data)
        name = f"{self._prefix}{name}"
        assert self._hints.setdefault(name, smoothing_hint) == smoothing_hint, (
            f"'{name}' was put with another smoothing_hint before"
        )
        index = self.epoch if is_epoch else self.iter
        self._histories.setdefault(name, HistoryBuffer()).update(value, index)
        self._latest[name] = value
        if self.run is not None:
            self.run.metrics.put(f"train/{name}", value)

    def put_scalars(
        self, *, smoothing_hint: bool = True, is_epoch: bool = False, **scalars: float | Tensor
    ) -> None:
        """Add several numbers."""
        for name, value in scalars.items():
            self.put_scalar(name, value, smoothing_hint, is_epoch)

    def put_image(self, name: str, data: object) -> None:
        """Add a picture for the loggers that show pictures."""
        self.vis_data.append(name, data, self.iter)

    def put_histogram(self, name: str, data: Tensor | Sequence[float]) -> None:
        """Add numbers whose distribution loggers may show."""
        self.histograms.append(name, data, self.iter)

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

    def put_later(self, name: str, value: float | Tensor) -> None:
        """Add a number that the run has recorded; it is read from its device when needed."""
        waiting = self._waiting.get(name)
        if waiting is None:
            waiting = self._waiting[name] = (Waiting(), [])
        waiting[1].append(self.iter)
        if waiting[0].add(value):
            self._read()

    def _read(self) -> None:
        for name, (waiting, iterations) in self._waiting.items():
            if not iterations:
                continue
            numbers = waiting.read()
            self._hints.setdefault(name, True)
            self._histories.setdefault(name, HistoryBuffer()).extend(numbers, iterations)
            # After a step the last one is an old one.
            if iterations[-1] == self.iter:
                self._latest[name] = numbers[-1]
            iterations.clear()

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

    @property
    def scalars(self) -> dict[str, float]:
        """The scalars of the current iteration, under iMIX's name."""
        return self.latest

    @property
    def is_by_epoch(self) -> bool:
        """Whether the training is counted in epochs, under iMIX's other name."""
        return self.by_epoch

    def epoch_step(self) -> None:
        """Continue with the next epoch."""
        self.epoch += 1

    def epoch_iter(self, inner_iter: int) -> None:
        """Note the iterations done in this epoch, given the index of the last one."""
        self.epoch_inner_iter = inner_iter + 1

    def step(self) -> None:
        """Continue with the next iteration; the current scalars become old."""
        self.iter += 1
        # A new dict: a hook may keep the old one.
        self._latest = {}

    def clear_images(self) -> None:
        """Forget the pictures that a logger has written."""
        self.vis_data.clear()

    def clear_histograms(self) -> None:
        """Forget the distributions that a logger has written."""
        self.histograms.clear()


def get_log_buffer() -> LogBufferStorage:
    """Return the buffer of the current run."""
    buffer = _current.get()
    if buffer is None:
        raise HookError("get_log_buffer: no run with hooks of iMIX is in progress.")
    return buffer


def set_log_buffer(buffer: LogBufferStorage) -> None:
    """Set the buffer of the current run."""
    _current.set(buffer)
