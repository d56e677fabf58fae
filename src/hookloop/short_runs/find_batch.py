"""Find the largest batch that fits into memory, and leave the training as it was."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

import torch
from torch.utils.data import DataLoader, IterableDataset

from hookloop.data.batch import to_device
from hookloop.errors import DataError, HookloopError
from hookloop.parallel.memory import device_memory, peak_memory
from hookloop.short_runs.borrowed import UPDATES, Iterations, borrowed
from hookloop.trainer.inputs import check_trainable, check_updates

if TYPE_CHECKING:
    from hookloop.engine.run import Run
    from hookloop.trainer.trainer import Trainer

MOST = 4096
"""The largest batch that is tried, unless another is given."""

_PHRASES = ("out of memory", "can't allocate memory", "not enough memory")


@dataclass(frozen=True)
class Trial:
    """A batch size that was tried.

    Attributes:
        size: Samples of the batch.
        fits: Whether memory sufficed.
        seconds: Seconds per iteration; None if it did not fit.
        memory: Peak of the device's memory in MiB; on a CPU by how much the peak of the process
            has grown since the search began. None if that is unknown, or did not grow.
    """

    size: int
    fits: bool
    seconds: float | None = None
    memory: float | None = None

    @property
    def samples_per_second(self) -> float | None:
        """Samples per second; None if it did not fit."""
        return None if not self.seconds else self.size / self.seconds


@dataclass(frozen=True)
class FoundBatch:
    """What `find_batch` found.

    Attributes:
        trials: The sizes that were tried, in the order of size.
        most: The largest size that would have been tried.
    """

    trials: tuple[Trial, ...]
    most: int

    @property
    def largest(self) -> int:
        """The largest size that fits; 0 if not even one sample does."""
        return max((trial.size for trial in self.trials if trial.fits), default=0)

    @property
    def fastest(self) -> int:
        """The size with the most samples per second; 0 if none fits."""
        fitting = [trial for trial in self.trials if trial.fits]
        by_speed = max(fitting, key=lambda trial: trial.samples_per_second or 0.0, default=None)
        return 0 if by_speed is None else by_speed.size

    @property
    def is_limited(self) -> bool:
        """Whether memory was the limit, and not ``most``."""
        return not all(trial.fits for trial in self.trials)


def find_batch(trainer: Trainer, *, most: int | None = None, iterations: int = 3) -> FoundBatch:
    """Find the largest batch size of ``train_data`` that fits into memory.

    Sizes are doubled until one does not fit, then the gap is halved. Each is tried with a few
    iterations (forward, backward, update) on the first samples of the data set, without hooks.
    Weights, optimizers and random numbers are restored: a training afterwards ends with the same
    bits as without the search, and nothing is written to disk.

    Args:
        trainer: The Trainer, whose ``train_data`` is a DataLoader over a map-style data set.
        most: The largest size to try; by default 4096, or the size of the data set.
        iterations: How many iterations are timed for each size, after a first one that is not.

    Raises:
        DataError: If ``train_data`` is not such a DataLoader.
    """
    run = trainer.run
    loader = _check(trainer)
    available = len(cast("Sized", loader.dataset))
    limit = min(available, MOST if most is None else most)
    if limit < 1 or iterations < 1:
        raise HookloopError("find_batch: most and iterations must be at least 1.")
    # In host memory: a second copy on the device would be missing to the search.
    with borrowed(trainer, keep=UPDATES, where="host") as made:
        trials = _Search(made, run, loader, iterations).find(limit)
    return FoundBatch(tuple(sorted(trials, key=lambda trial: trial.size)), limit)


def _check(trainer: Trainer) -> DataLoader[Any]:
    run = trainer.run
    check_updates(run, trainer._updates)
    if run.train_data is None or not run.optimizers:
        check_trainable(run)  # It says what is missing.
    if not run.world.is_alone:
        raise HookloopError("find_batch works in one process: start it without other ranks.")
    loader = run.train_data.data if run.train_data is not None else None
    if isinstance(loader, Mapping):
        raise DataError(
            "find_batch searches with one DataLoader, and train_data has streams: give one of them "
            "as train_data=, without mix=.",
            argument="train_data",
        )
    dataset = getattr(loader, "dataset", None)
    is_mapped = hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")
    if (
        not isinstance(loader, DataLoader)
        or loader.batch_sampler is None
        or isinstance(dataset, IterableDataset)
        or not is_mapped
    ):
        raise DataError(
            f"find_batch makes batches of its own, and train_data is {type(loader).__name__}: it "
            "needs a DataLoader with a batch_size, over a data set with a length and indices.",
            argument="train_data",
        )
    return loader


class _Search:
    """Tries sizes one after the other."""

    def __init__(
        self, iterations: Iterations, run: Run, loader: DataLoader[Any], timed: int
    ) -> None:
        self._iterations = iterations
        self._run = run
        self._loader = loader
        self._timed = timed
        self._samples: list[object] = []
        self._before = peak_memory()

    def find(self, most: int) -> list[Trial]:
        """Double the size while it fits, then halve the gap to the first that does not."""
        # Not from 1, with which batch norm cannot train; one sample is tried if two do not fit.
        trials = [self._try(min(2, most))]
        while trials[-1].fits and trials[-1].size < most:
            trials.append(self._try(min(2 * trials[-1].size, most)))
        if trials[-1].fits:
            return trials
        fits = max((trial.size for trial in trials if trial.fits), default=0)
        fails = trials[-1].size
        while fails - fits > 1:
            trial = self._try((fits + fails) // 2)
            trials.append(trial)
            fits, fails = (trial.size, fails) if trial.fits else (fits, trial.size)
        return trials

    def _try(self, size: int) -> Trial:
        device = self._run.device
        if device.type == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats(device)
        seconds = self._time(size)
        if seconds is None:
            return Trial(size, fits=False)
        peak, now = device_memory(device).get("device_peak"), peak_memory()
        if device.type == "cpu" and self._before is not None and now is not None:
            peak = (now - self._before) or None
        return Trial(size, fits=True, seconds=seconds, memory=peak)

    def _time(self, size: int) -> float | None:
        """Return the seconds of an iteration, or None if memory did not suffice."""
        try:
            batch = self._batch(size)
            times = [self._iterate(batch) for _ in range(self._timed + 1)]
        except Exception as error:
            if not is_out_of_memory(error):
                error.add_note(f"while a batch of {size} samples was tried")
                raise
            return None
        # The first iteration allocates memory, and may compile.
        return median(times[1:])

    def _batch(self, size: int) -> object:
        dataset: Any = self._loader.dataset
        missing = list(range(len(self._samples), size))
        if missing:
            fetch = getattr(dataset, "__getitems__", None)
            found = fetch(missing) if fetch is not None else [dataset[i] for i in missing]
            self._samples += found
        return to_device(self._loader.collate_fn(self._samples[:size]), self._run.device)

    def _iterate(self, batch: object) -> float:
        start = perf_counter()
        self._iterations.renew()
        self._iterations.make([batch])
        if self._run.device.type == "cuda":
            torch.cuda.synchronize(self._run.device)
        return perf_counter() - start


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error says that memory did not suffice.

    >>> is_out_of_memory(RuntimeError("DefaultCPUAllocator: can't allocate memory: ..."))
    True
    """
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and any(phrase in text for phrase in _PHRASES)
