import sys
from pathlib import Path

import pytest
import torch

from hookloop.parallel import memory
from hookloop.parallel.memory import MIB, device_memory, host_memory, memory_summary, peak_memory

CPU = torch.device("cpu")


def test_memory_that_is_allocated_is_seen():
    before = host_memory()["rss"]
    block = bytearray(64 * MIB)
    block[::4096] = b"x" * len(block[::4096])  # Only pages that were written to are resident.
    now = host_memory()
    assert now["rss"] - before > 32
    assert now["rss_peak"] >= now["rss"]


def test_the_peak_does_not_fall():
    block = bytearray(64 * MIB)
    block[::4096] = b"x" * len(block[::4096])
    high = peak_memory()
    del block
    assert peak_memory() >= high


def test_without_proc_the_peak_stands_for_both(monkeypatch):
    monkeypatch.setattr(memory, "_STATUS", Path("/does/not/exist"))
    found = host_memory()
    assert found["rss"] == found["rss_peak"] > 0


def test_a_system_that_reports_nothing_has_nothing(monkeypatch):
    monkeypatch.setattr(memory, "_STATUS", Path("/does/not/exist"))
    monkeypatch.setitem(sys.modules, "resource", None)
    assert peak_memory() is None
    assert host_memory() == {}


def test_a_cpu_has_no_memory_of_its_own():
    assert device_memory(CPU) == {}


def test_the_memory_of_a_gpu_is_in_mib(monkeypatch):
    for name, amount in (
        ("memory_allocated", 3),
        ("max_memory_allocated", 5),
        ("memory_reserved", 8),
    ):
        monkeypatch.setattr(torch.cuda, name, lambda device, amount=amount: amount * MIB)
    found = device_memory(torch.device("cuda"))
    assert found == {"device": 3.0, "device_peak": 5.0, "device_reserved": 8.0}


def test_the_memory_of_mps_is_in_mib(monkeypatch):
    monkeypatch.setattr(torch.mps, "current_allocated_memory", lambda: 2 * MIB)
    monkeypatch.setattr(torch.mps, "driver_allocated_memory", lambda: 4 * MIB)
    assert device_memory(torch.device("mps")) == {"device": 2.0, "device_reserved": 4.0}


@pytest.mark.parametrize("name", ["rss", "rss_peak"])
def test_the_summary_has_a_line_for_each_number(name):
    lines = [line.split() for line in memory_summary(CPU).splitlines()]
    (line,) = [line for line in lines if line[0] == name]
    assert float(line[1]) > 0 and line[2] == "MiB"
