"""`LogDevice`: record what GPUs, processors, memory and disk are doing."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import torch

from hookloop.engine.hook import Hook
from hookloop.errors import HookError
from hookloop.every import Every
from hookloop.outcome import Disabled
from hookloop.parallel.device_readings import GpuReadings, HostReadings
from hookloop.runs.policy import Machine
from hookloop.writers.base import require
from hookloop.writers.records import Scalars
from hookloop.writers.sampler import Sampler

if TYPE_CHECKING:
    from hookloop.engine.run import Run

_log = logging.getLogger("hookloop")


class LogDevice(Hook):
    """Send ``device/...`` to all writers, sampled in a thread and never in an iteration.

    Of the host: ``cpu_percent``, ``ram_percent``, ``ram_used``, ``disk_percent``, ``disk_free``,
    ``process_cpu_percent`` and ``process_rss``. Of each NVIDIA GPU that the process may use:
    ``gpu0/utilization``, ``memory_used``, ``memory_percent``, ``power``, ``temperature``,
    ``sm_clock`` and ``memory_clock``. Memory is in MiB, disk in GiB, power in W, clocks in MHz. On
    many ranks, the first one reads its host. The numbers go to the writers and not to the metric
    store, because they say nothing about the training and a resume cannot repeat them.

    Args:
        every: Interval in time; a first sample is taken after a second, the last one at the end.

    Example:
        >>> str(LogDevice(every="30 s").interval)
        '30 s'
    """

    ranks = "first"
    on_error = "disable"
    writes = (Machine("device/*"),)
    draws_random_numbers = False

    def __init__(self, every: Every | int | str = "10 s") -> None:
        self.interval = Every.parse(every)
        if self.interval.unit != "seconds":
            raise HookError(f"LogDevice: give an interval in time, '10 s', not '{self.interval}'.")
        self._psutil = require("psutil", extra="device", who="LogDevice")
        self._host: HostReadings | None = None
        self._gpus: GpuReadings | None = None
        self._sampler: Sampler | None = None

    def check_setup(self) -> None:
        if _uuids():
            require("pynvml", extra="device", who="LogDevice")

    def before_run(self, run: Run) -> None:
        self.check_setup()
        host = HostReadings(self._psutil, run.dir)
        gpus = None
        if uuids := _uuids():
            gpus = GpuReadings(require("pynvml", extra="device", who="LogDevice"), uuids)

        def sample() -> None:
            readings = host.read() | (gpus.read() if gpus is not None else {})
            values = {f"device/{name}": value for name, value in readings.items()}
            run.emit(Scalars(values, run.progress.iter, run.progress.epoch, run.phase))

        def report(error: BaseException) -> None:
            reason = f"{type(error).__name__}: {error}"
            _log.warning("LogDevice failed and is switched off for the rest of the run: %s", reason)
            run.plan.disabled.append(Disabled(self.name, "sampling", reason))

        self._gpus = gpus
        self._sampler = Sampler(sample, self.interval.count, report)

    def after_run(self, run: Run) -> None:
        sampler, self._sampler = self._sampler, None
        gpus, self._gpus = self._gpus, None
        # A thread that hangs in the driver still uses the library.
        if sampler is not None and sampler.close() and gpus is not None:
            gpus.close()


def _uuids() -> list[str]:
    """Return the ids of the NVIDIA GPUs that this process may use."""
    if not torch.cuda.is_available() or torch.version.hip is not None:
        return []
    count = torch.cuda.device_count()
    return [f"GPU-{torch.cuda.get_device_properties(number).uuid}" for number in range(count)]
