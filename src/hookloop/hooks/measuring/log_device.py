"""`LogDevice`: record what GPUs, processors, memory and disk are doing."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import torch

from hookloop.engine.hook import Hook
from hookloop.errors import HookError
from hookloop.every import Every
from hookloop.outcome import Disabled
from hookloop.parallel.memory import MIB
from hookloop.runs.policy import Machine
from hookloop.writers.base import require
from hookloop.writers.records import Scalars

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
            run._plan.disabled.append(Disabled(self.name, "sampling", reason))

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


FIRST_AFTER = 1.0
"""Seconds to the first sample, if the interval is longer."""
PATIENCE = 10.0
"""Seconds to wait for the last sample."""


class Sampler:
    """Calls a function in a thread of its own: soon, then at the interval, and when it is closed.

    A function that fails is reported, and not called again.

    Args:
        sample: Takes a sample and passes it on.
        seconds: The interval.
        report: Called in the thread with the error, if there is one.
    """

    def __init__(
        self, sample: Callable[[], None], seconds: float, report: Callable[[BaseException], None]
    ) -> None:
        self._sample = sample
        self._seconds = seconds
        self._report = report
        self._end = threading.Event()
        # With the context of the caller: what the thread logs belongs to the run that starts it. A
        # daemon: a driver that hangs must not keep the process alive.
        self._thread = threading.Thread(
            target=copy_context().run, args=(self._work,), name="sample", daemon=True
        )
        self._thread.start()

    def close(self) -> bool:
        """Take the last sample and end the thread; return whether it has ended."""
        self._end.set()
        self._thread.join(PATIENCE)
        return not self._thread.is_alive()

    def _work(self) -> None:
        try:
            is_last = self._end.wait(min(FIRST_AFTER, self._seconds))
            self._sample()
            while not is_last:
                is_last = self._end.wait(self._seconds)
                self._sample()
        except Exception as error:  # noqa: BLE001 - reported, and the run continues without it
            self._report(error)


GIB = 2**30


class HostReadings:
    """Reads processors, memory and disk of the host, and what this process uses of them.

    Args:
        psutil: The package of that name.
        disk: A directory on the disk to look at.
    """

    def __init__(self, psutil: ModuleType, disk: Path) -> None:
        self._psutil = psutil
        self._process = psutil.Process()
        self._disk = str(disk)
        # Shares of a processor are those since the last call, so the first call is lost.
        psutil.cpu_percent()
        self._process.cpu_percent()

    def read(self) -> dict[str, float]:
        """Return the readings by name: shares in percent, memory in MiB, disk in GiB."""
        memory, disk = self._psutil.virtual_memory(), self._psutil.disk_usage(self._disk)
        return {
            "cpu_percent": self._psutil.cpu_percent(),
            "ram_percent": memory.percent,
            "ram_used": (memory.total - memory.available) / MIB,
            "disk_percent": disk.percent,
            "disk_free": disk.free / GIB,
            "process_cpu_percent": self._process.cpu_percent(),
            "process_rss": self._process.memory_info().rss / MIB,
        }


class GpuReadings:
    """Reads the GPUs that this process may use.

    Args:
        nvml: The package ``pynvml``.
        uuids: The GPUs in the order of torch's numbers.
    """

    def __init__(self, nvml: ModuleType, uuids: Sequence[str]) -> None:
        nvml.nvmlInit()
        self._nvml = nvml
        self._handles = [nvml.nvmlDeviceGetHandleByUUID(uuid) for uuid in uuids]

    def read(self) -> dict[str, float]:
        """Return percent, MiB, W, degrees Celsius and MHz; what a GPU does not report is absent."""
        found: dict[str, float] = {}
        for number, handle in enumerate(self._handles):
            for read in (self._load, self._memory, self._power, self._temperature, self._clocks):
                found |= {f"gpu{number}/{n}": v for n, v in self._attempt(read, handle).items()}
        return found

    def close(self) -> None:
        """Release the library."""
        self._nvml.nvmlShutdown()

    def _attempt(
        self, read: Callable[[object], Mapping[str, float]], handle: object
    ) -> Mapping[str, float]:
        try:
            return read(handle)
        except self._nvml.NVMLError_NotSupported:  # Many cards lack one of them.
            return {}

    def _load(self, handle: object) -> dict[str, float]:
        return {"utilization": float(self._nvml.nvmlDeviceGetUtilizationRates(handle).gpu)}

    def _memory(self, handle: object) -> dict[str, float]:
        memory = self._nvml.nvmlDeviceGetMemoryInfo(handle)
        percent = 100 * memory.used / memory.total
        return {"memory_used": memory.used / MIB, "memory_percent": percent}

    def _power(self, handle: object) -> dict[str, float]:
        return {"power": self._nvml.nvmlDeviceGetPowerUsage(handle) / 1000}  # It counts milliwatts.

    def _temperature(self, handle: object) -> dict[str, float]:
        sensor = self._nvml.NVML_TEMPERATURE_GPU
        return {"temperature": float(self._nvml.nvmlDeviceGetTemperature(handle, sensor))}

    def _clocks(self, handle: object) -> dict[str, float]:
        nvml = self._nvml
        kinds = {"sm_clock": nvml.NVML_CLOCK_SM, "memory_clock": nvml.NVML_CLOCK_MEM}
        return {n: float(nvml.nvmlDeviceGetClockInfo(handle, kind)) for n, kind in kinds.items()}
