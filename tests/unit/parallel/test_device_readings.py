from types import SimpleNamespace

import psutil
import pytest

from hookloop.hooks.measuring.log_device import GpuReadings, HostReadings


def test_a_host_reports_shares_and_sizes(tmp_path):
    readings = HostReadings(psutil, tmp_path).read()
    assert 0 < readings["process_rss"] < readings["ram_used"] + 1e6
    assert all(0 <= readings[name] <= 100 for name in ("ram_percent", "disk_percent"))
    assert readings["disk_free"] >= 0 and readings["cpu_percent"] >= 0


class NotSupportedError(Exception):
    pass


class Nvml:
    """What the library answers for a card that reports no power."""

    NVMLError_NotSupported = NotSupportedError
    NVML_TEMPERATURE_GPU, NVML_CLOCK_SM, NVML_CLOCK_MEM = 0, 1, 2

    def __init__(self):
        self.open = 0

    def nvmlInit(self):
        self.open += 1

    def nvmlShutdown(self):
        self.open -= 1

    def nvmlDeviceGetHandleByUUID(self, uuid):
        return uuid

    def nvmlDeviceGetUtilizationRates(self, handle):
        return SimpleNamespace(gpu=87)

    def nvmlDeviceGetMemoryInfo(self, handle):
        return SimpleNamespace(used=2**30, total=2**32)

    def nvmlDeviceGetPowerUsage(self, handle):
        if handle == "GPU-b":
            raise NotSupportedError
        return 250_000

    def nvmlDeviceGetTemperature(self, handle, sensor):
        return 61

    def nvmlDeviceGetClockInfo(self, handle, kind):
        return 1000 + kind


def test_gpus_are_read_by_their_id_and_what_one_lacks_is_left_out():
    nvml = Nvml()
    gpus = GpuReadings(nvml, ["GPU-a", "GPU-b"])
    readings = gpus.read()
    assert readings["gpu0/power"] == 250.0
    assert "gpu1/power" not in readings
    assert readings["gpu1/memory_used"] == 1024.0
    assert readings["gpu1/memory_percent"] == pytest.approx(25.0)
    assert readings["gpu0/sm_clock"] == 1001.0
    assert len(readings) == 13
    gpus.close()
    assert nvml.open == 0
