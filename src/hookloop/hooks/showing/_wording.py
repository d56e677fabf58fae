"""Text about the state of a run, shared by the hooks that log it and show it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

import torch

from hookloop.hooks.writing._writing import learning_rates
from hookloop.metrics.store import EPOCH_STREAM, stream_of
from hookloop.parallel.memory import MIB
from hookloop.parallel.memory import peak_memory as process_peak

if TYPE_CHECKING:
    from hookloop.engine.run import Run

WINDOW = 50  # Iterations over which the numbers beside a bar are averaged.
SPARKS = "▁▂▃▄▅▆▇█"


def format_count(done: int, limit: int | None) -> str:
    """Return how much is done, and of how much if that is known.

    >>> format_count(3, 20), format_count(3, None)
    ('3/20', '3')
    """
    return f"{done}/{limit}" if limit is not None else str(done)


def format_numbers(values: Mapping[str, float]) -> str:
    """Return names and numbers as text.

    >>> format_numbers({"loss": 0.123456, "lr": 0.001})
    'loss 0.1235  lr 0.001'
    """
    return "  ".join(f"{name} {value:.4g}" for name, value in values.items())


def without_times(values: Mapping[str, float]) -> dict[str, float]:
    """Leave out times, which a line shows separately, and the norms of single parameters.

    >>> without_times({"loss": 0.1, "iter_time": 0.2, "norms/grad": 0.3, "norms/grad/0.bias": 0.3})
    {'loss': 0.1, 'norms/grad': 0.3}
    """
    return {n: v for n, v in values.items() if not ("_time" in n or is_detail(n))}


def is_detail(name: str) -> bool:
    """Return whether a metric is the norm of a single parameter or module.

    A model has hundreds of them, and a line has room for a few numbers.
    """
    return name.startswith("norms/") and name.count("/") > 1


def format_progress(run: Run) -> str:
    """Return the current epoch and iteration as text."""
    progress = run.progress
    words = f"iter {format_count(progress.iter, progress.total_iters)}"
    if progress.max_epochs == 1:
        return words
    return f"epoch {format_count(progress.epoch + 1, progress.max_epochs)}  {words}"


def read_recent(run: Run, window: int = WINDOW) -> dict[str, float]:
    """Read means of recent training metrics by short name, and the newest values of hooks."""
    return drop_train_prefix(run.metrics.recent("train", window)) | run.metrics.latest_of_hooks()


def read_new(run: Run, reader: str, skip: Callable[[str], bool] | None = None) -> dict[str, float]:
    """Read the values that are new to a reader, by full name."""
    now = (run.progress.iter, run.progress.epoch)
    new = run.metrics.read_new(reader, now, skip)
    return {name: value for values in new.values() for name, value in values.items()}


def read_new_of_hooks(
    run: Run, reader: str, skip: Callable[[str], bool] | None = None
) -> dict[str, float]:
    """Read the new values that hooks put under names of their own.

    The values of a phase are marked as read too: the line of the phase shows them.
    """
    new = read_new(run, reader, skip)
    return {n: v for n, v in new.items() if not (stream_of(n) or is_detail(n))}


def read_unshown(run: Run, reader: str) -> dict[str, float]:
    """Read the values that no line has shown yet, by short name.

    Between epochs, training metrics are left out: the line of the epoch shows their means.
    """
    # A run that ends within an epoch has no line of the epoch, so they are shown after all.
    is_inside = run.progress.stage == "inside"
    rest = read_new(run, reader, None if is_inside else run.metrics.has_epoch_mean)
    shown = {name: value for name, value in rest.items() if stream_of(name) != EPOCH_STREAM}
    return without_times(drop_train_prefix(shown))


def is_training_metric(name: str) -> bool:
    """Return whether a metric is measured in each iteration, and so has its own interval."""
    return stream_of(name) == "train"


def drop_train_prefix(values: Mapping[str, float]) -> dict[str, float]:
    """Shorten the names of training metrics.

    >>> drop_train_prefix({"train/loss": 0.1})
    {'loss': 0.1}
    """
    return {name.removeprefix("train/"): value for name, value in values.items()}


def format_recent(run: Run, recent: Mapping[str, float]) -> str:
    """Return losses, learning rate and speed as text."""
    text = format_numbers(without_times(recent) | learning_rates(run))
    if "iter_time" in recent:
        text += f"  {format_milliseconds(recent['iter_time'], 3)} ms/iter"
    if "data_time" in recent:
        text += f" (data {format_milliseconds(recent['data_time'], 2)})"
    return text


def format_training(run: Run, recent: Mapping[str, float]) -> str:
    """Return the line of a training: position, numbers, speed and remaining time."""
    eta = format_remaining(run, recent)
    return f"{format_progress(run)}  {format_recent(run, recent)}  eta {eta}"


def format_milliseconds(seconds: float, digits: int) -> str:
    """Return a time with this many significant digits, or as a whole number if it is longer.

    >>> (
    ...     format_milliseconds(0.001234, 2),
    ...     format_milliseconds(0.2081, 2),
    ...     format_milliseconds(1.5, 3),
    ... )
    ('1.2', '208', '1500')
    """
    # Not `.3g` alone, which would write 1500 as 1.5e+03.
    time = 1000 * seconds
    return f"{time:.0f}" if time >= 10**digits - 0.5 else f"{time:.{digits}g}"


def format_remaining(run: Run, recent: Mapping[str, float]) -> str:
    """Return the remaining time, from the mean time of recent iterations."""
    total, seconds = run.progress.total_iters, recent.get("iter_time")
    if total is None or seconds is None:
        return "?"
    return format_duration(seconds * max(0, total - run.progress.iter))


def format_duration(seconds: float) -> str:
    """Return a time in hours, minutes and seconds.

    >>> format_duration(3725.4)
    '1:02:05'
    """
    return str(timedelta(seconds=round(seconds)))


def format_peak_memory(device: torch.device) -> str:
    """Return the peak memory of the GPU, or of the process if there is none."""
    if device.type == "cuda":
        return f"{torch.cuda.max_memory_allocated(device) / MIB:.0f} MB"
    peak = process_peak()
    return "?" if peak is None else f"{peak:.0f} MB"  # Not every system reports it.


def sparkline(values: Sequence[float], width: int = 40) -> str:
    """Draw values as a row of bars; a value that is not finite leaves a gap.

    >>> sparkline([3.0, 2.0, 1.0])
    '█▅▁'
    >>> sparkline([])
    ''
    """
    shown = _binned(values, width)
    finite = [value for value in shown if math.isfinite(value)]
    if not finite:
        return " " * len(shown)
    low, high = min(finite), max(finite)  # They may be equal: then all bars are low.
    steps = len(SPARKS) - 1
    return "".join(
        SPARKS[round(steps * (value - low) / (high - low))]
        if math.isfinite(value) and high > low
        else (SPARKS[0] if math.isfinite(value) else " ")
        for value in shown
    )


def _binned(values: Sequence[float], width: int) -> list[float]:
    """Average neighbouring values so that at most ``width`` are left."""
    if len(values) <= width:
        return list(values)
    edges = [round(index * len(values) / width) for index in range(width + 1)]
    return [sum(values[first:last]) / (last - first) for first, last in pairwise(edges)]
