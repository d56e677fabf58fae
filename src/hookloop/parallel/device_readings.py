"""What a host and its GPUs are doing now, as psutil and NVIDIA's library report it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType

from hookloop.parallel.memory import MIB

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
