"""iMIX's loggers: text, JSON and TensorBoard.

In iMIX they are writers that `PeriodicLogger` calls, though its document lists them as hooks. Here
they are both: used as a hook, each writes every ``log_config.period`` iterations.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, BinaryIO

import torch

from hookloop.dialects import open_to_append, require, write_text
from hookloop.errors import HookError
from hookloop_dialects.imix.engine.hooks.base_hook import HookBase
from hookloop_dialects.imix.log_buffer import LogBufferStorage, get_log_buffer
from hookloop_dialects.imix.trainer import EngineFacade

_log = logging.getLogger("imix")

PERIOD = 20  # iMIX's default.


class LogBufferWriter(HookBase):
    """The base of loggers that write the content of the log buffer, ``self.log_buffer``.

    Attributes:
        writes_epochs: Whether it also writes at the end of an epoch.
    """

    log_buffer: LogBufferStorage
    writes_epochs = False
    _has_written = False

    def write(self) -> None:
        """Write the numbers of the current iteration."""
        self._has_written = True
        self.get_buffer_data()
        self.process_buffer_data()

    def end_epoch(self, period: int) -> None:
        """Write at the end of an epoch; report, once, that the epoch was too short for a period."""
        if not self._has_written:
            self._has_written = True
            _log.warning(
                "%s has written no iteration: its period is %d iterations, counted within the "
                "epoch, and the first epoch had fewer. Give the config a smaller "
                "log_config.period; in a config file, under vars.",
                type(self).__name__,
                period,
            )
        if self.writes_epochs:
            self.write()

    def get_buffer_data(self) -> None:
        """Find the log buffer of the current run."""
        self.log_buffer = get_log_buffer()

    def process_buffer_data(self) -> None:
        """Write what is in the log buffer."""
        raise NotImplementedError

    def close(self) -> None:
        """Close files."""

    def after_train_iter(self) -> None:
        period = period_of(self.trainer)
        length = self.trainer.log_buffer.single_epoch_iters
        # By itself, for iMIX has it in a PeriodicLogger only: the end of a shorter epoch is due.
        if is_due(self.trainer, min(period, length or period)):
            self.write()

    def after_train_epoch(self) -> None:
        self.end_epoch(period_of(self.trainer))

    def after_train(self) -> None:
        self.close()


def period_of(trainer: EngineFacade, default: int = PERIOD) -> int:
    """Return the iterations between two writes: ``log_config.period`` if the config has it."""
    found = trainer.cfg.find("log_config.period", default)
    return int(found) if isinstance(found, int | float) else default


def is_due(trainer: EngineFacade, period: int) -> bool:
    """Return whether loggers write in this iteration."""
    # iMIX counts within the epoch if there are epochs. By iteration, it adds the last one.
    if trainer.by_epoch:
        return (trainer.inner_iter + 1) % period == 0
    done = trainer.iter + 1
    return done % period == 0 or done == trainer.max_iter


class CommonMetricLoggerHook(LogBufferWriter):
    """Log a line with losses, learning rate, times, memory and the time left.

    Args:
        max_iter: Iterations of the run; by default the run's own.
        max_epoch: Epochs of the run; by default the run's own.
    """

    def __init__(self, max_iter: int | None = None, max_epoch: int | None = None) -> None:
        super().__init__()
        self._max_iter = max_iter
        self._max_epoch = max_epoch

    def process_buffer_data(self) -> None:
        buffer, histories = self.log_buffer, self.log_buffer.histories()
        where = f"iter: {buffer.iter + 1}"
        if buffer.by_epoch:
            where = f"epoch: {buffer.epoch}  {where}"
        losses = [f"{n}: {v:.4g}" for n, v in buffer.latest.items() if "loss" in n]
        parts = [where, *losses, *self._rate()]
        if "iter_time" in histories:  # Only with an IterationTimerHook.
            parts.append(f"time: {histories['iter_time'].global_mean:.4f}")
            run = buffer.run
            total = self._max_iter or (None if run is None else run.progress.total_iters)
            if total is not None:
                left = histories["iter_time"].median(1000) * (total - buffer.iter - 1)
                parts.append(f"eta: {timedelta(seconds=int(left))}")
        if torch.cuda.is_available():
            parts.append(f"max_mem: {torch.cuda.max_memory_allocated() / 1024**2:.0f}M")
        _log.info("  ".join(parts))

    def _rate(self) -> list[str]:
        run = self.log_buffer.run
        rates = (
            [] if run is None else [one.param_groups[0]["lr"] for one in run.optimizers.values()]
        )
        return [f"lr: {rate:.6g}" for rate in rates]


def write_metrics(data: Mapping[str, object]) -> None:
    """Put numbers into the log buffer, except for ``loss``, as iMIX's engine does."""
    for name, value in data.items():
        if name != "loss" and isinstance(value, int | float | torch.Tensor):
            get_log_buffer().put_scalar(name, value)


class JSONLoggerHook(LogBufferWriter):
    """Write a JSON object per line, its keys sorted; numbers that may be smoothed are medians.

    Args:
        json_file: The file; by default ``training_status.json`` in the run directory.
        window_size: Number of iterations in a median.
    """

    def __init__(self, json_file: str | None = None, window_size: int = 20) -> None:
        super().__init__()
        self._json_file = json_file
        self._window_size = window_size
        self._file: BinaryIO | None = None

    def process_buffer_data(self) -> None:
        buffer = self.log_buffer
        line: dict[str, object] = {"iteration": buffer.iter}
        if buffer.by_epoch:
            # The global iteration, in spite of the name: so it is in iMIX's files.
            line = {"epoch": buffer.epoch, "inner-iteration": buffer.iter}
        line |= buffer.latest_with_smoothing_hint(self._window_size)
        if self._file is None:
            path = Path(self._json_file or _run_dir(buffer) / "training_status.json")
            # A new training empties the file, as iMIX does; a resumed one continues it.
            if not buffer.start_iter:
                write_text(path, "")
            self._file = open_to_append(path)
        self._file.write(f"{json.dumps(line, sort_keys=True)}\n".encode())
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class TensorboardLoggerHook(LogBufferWriter):
    """Write scalars, pictures and histograms for TensorBoard.

    Args:
        log_dir: The files are in ``runs`` of this directory; by default the run directory.
        window_size: Number of iterations in a median.
        kwargs: Passed to torch's SummaryWriter.
    """

    # As in iMIX: epoch_time is put after the last iteration, and TensorBoard shall have it.
    writes_epochs = True

    def __init__(self, log_dir: str | None = None, window_size: int = 20, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__()
        require("tensorboard", extra="tensorboard", who="TensorboardLoggerHook")
        self._log_dir = log_dir
        self._window_size = window_size
        self._kwargs: Mapping[str, Any] = kwargs
        self._writer: Any = None

    def process_buffer_data(self) -> None:
        buffer = self.log_buffer
        if self._writer is None:
            from torch.utils.tensorboard import SummaryWriter

            # As in iMIX, in 'runs' of the directory that is given.
            directory = Path(self._log_dir or _run_dir(buffer)) / "runs"
            self._writer = SummaryWriter(str(directory), **self._kwargs)
        for name, value in buffer.latest_with_smoothing_hint(self._window_size).items():
            self._writer.add_scalar(name, value, buffer.iter)
        for name, image, step in buffer.vis_data.images:
            self._writer.add_image(name, image, step)
        for histogram in buffer.histograms.histograms:
            self._writer.add_histogram_raw(**histogram)
        buffer.clear_images()
        buffer.clear_histograms()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def _run_dir(buffer: LogBufferStorage) -> Path:
    if buffer.run is None:
        raise HookError("The log buffer belongs to no run: give the logger the path of its file.")
    return buffer.run.dir
