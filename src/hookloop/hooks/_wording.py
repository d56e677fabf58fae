"""How the state of a run is said in words and signs: shared by the hooks that log and show."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

import torch

from hookloop.hooks._writing import learning_rates
from hookloop.metrics.store import EPOCH, stream_of
from hookloop.parallel.memory import MIB
from hookloop.parallel.memory import peak_memory as process_peak

if TYPE_CHECKING:
    from hookloop.core.run import Run

WINDOW = 50
SPARKS = "▁▂▃▄▅▆▇█"


def of(done: int, limit: int | None) -> str:
    """Say how much of something is done, and of how much if that is known.

    >>> of(3, 20), of(3, None)
    ('3/20', '3')
    """
    return f"{done}/{limit}" if limit is not None else str(done)


def numbers(values: Mapping[str, float]) -> str:
    """Say names and numbers.

    >>> numbers({"loss": 0.123456, "lr": 0.001})
    'loss 0.1235  lr 0.001'
    """
    return "  ".join(f"{name} {value:.4g}" for name, value in values.items())


def without_times(values: Mapping[str, float]) -> dict[str, float]:
    """Leave out what is a time: a line of numbers has its own place for the speed.

    >>> without_times({"loss": 0.1, "iter_time": 0.2, "hook_time/metrics": 0.3})
    {'loss': 0.1}
    """
    return {name: value for name, value in values.items() if "_time" not in name}


def place(run: Run) -> str:
    """Say which epoch and iteration is the newest."""
    progress = run.progress
    words = f"iter {of(progress.iter, progress.total_iters)}"
    if progress.max_epochs == 1:
        return words
    return f"epoch {of(progress.epoch + 1, progress.max_epochs)}  {words}"


def recent_numbers(run: Run, window: int = WINDOW) -> dict[str, float]:
    """Read the training's numbers over recent iterations by short names, and those of hooks."""
    return short_names(run.metrics.recent("train", window)) | run.metrics.others()


def new_numbers(
    run: Run, reader: str, skip: Callable[[str], bool] | None = None
) -> dict[str, float]:
    """Read what was put since a reader did this last, by full name."""
    now = (run.progress.iter, run.progress.epoch)
    news = run.metrics.news(reader, now, skip)
    return {name: value for values in news.values() for name, value in values.items()}


def own_numbers(
    run: Run, reader: str, skip: Callable[[str], bool] | None = None
) -> dict[str, float]:
    """Read what hooks put under names of their own since a reader did this last.

    The other names are taken for read: they are shown with their phase.
    """
    return {n: v for n, v in new_numbers(run, reader, skip).items() if not stream_of(n)}


def rest_numbers(run: Run, reader: str) -> dict[str, float]:
    """Read what no line has shown yet, by short names.

    Between epochs, numbers of iterations are left out: the line of the epoch has their means.
    """
    is_inside = run.progress.stage == "inside"
    rest = new_numbers(run, reader, None if is_inside else run.metrics.has_epoch_mean)
    shown = {name: value for name, value in rest.items() if stream_of(name) != EPOCH}
    return without_times(short_names(shown))


def is_of_training(name: str) -> bool:
    """Return whether a number is one of iterations, which has its own interval."""
    return stream_of(name) == "train"


def short_names(values: Mapping[str, float]) -> dict[str, float]:
    """Leave out that numbers are of the training.

    >>> short_names({"train/loss": 0.1})
    {'loss': 0.1}
    """
    return {name.removeprefix("train/"): value for name, value in values.items()}


def describe(run: Run, recent: Mapping[str, float]) -> str:
    """Say losses, learning rate and speed."""
    text = numbers(without_times(recent) | learning_rates(run))
    if "iter_time" in recent:
        text += f"  {milliseconds(recent['iter_time'], 3)} ms/iter"
    if "data_time" in recent:
        text += f" (data {milliseconds(recent['data_time'], 2)})"
    return text


def milliseconds(seconds: float, digits: int) -> str:
    """Write a time with so many digits, and as a whole number if it is long.

    >>> milliseconds(0.001234, 2), milliseconds(0.2081, 2), milliseconds(1.5, 3)
    ('1.2', '208', '1500')
    """
    time = 1000 * seconds
    return f"{time:.0f}" if time >= 10**digits - 0.5 else f"{time:.{digits}g}"


def remaining(run: Run, recent: Mapping[str, float]) -> str:
    """Say how long the rest will take, from the mean time of recent iterations."""
    total, seconds = run.progress.total_iters, recent.get("iter_time")
    if total is None or seconds is None:
        return "?"
    return duration(seconds * max(0, total - run.progress.iter))


def duration(seconds: float) -> str:
    """Say a time.

    >>> duration(3725.4)
    '1:02:05'
    """
    return str(timedelta(seconds=round(seconds)))


def peak_memory(device: torch.device) -> str:
    """Say how much memory the run has needed at most: of the GPU, otherwise of the process."""
    if device.type == "cuda":
        return f"{torch.cuda.max_memory_allocated(device) / MIB:.0f} MB"
    taken = process_peak()
    return "?" if taken is None else f"{taken:.0f} MB"


def sparkline(values: Sequence[float], width: int = 40) -> str:
    """Draw values as a row of bars; what is not finite leaves a gap.

    >>> sparkline([3.0, 2.0, 1.0])
    '█▅▁'
    >>> sparkline([])
    ''
    """
    shown = _binned(values, width)
    finite = [value for value in shown if math.isfinite(value)]
    if not finite:
        return " " * len(shown)
    low, high = min(finite), max(finite)
    steps = len(SPARKS) - 1
    return "".join(
        SPARKS[round(steps * (value - low) / (high - low))]
        if math.isfinite(value) and high > low
        else (SPARKS[0] if math.isfinite(value) else " ")
        for value in shown
    )


def _binned(values: Sequence[float], width: int) -> list[float]:
    """Average neighbours until no more than ``width`` values are left."""
    if len(values) <= width:
        return list(values)
    edges = [round(index * len(values) / width) for index in range(width + 1)]
    return [sum(values[first:last]) / (last - first) for first, last in pairwise(edges)]
