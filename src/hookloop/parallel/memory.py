"""The memory that this process uses, on its host and on its device."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

MIB = 2**20
_STATUS = Path("/proc/self/status")


def host_memory() -> dict[str, float]:
    """Return the resident memory of the process and its peak, in MiB; empty if unknown.

    >>> memory = host_memory()
    >>> 0 < memory["rss"] <= memory["rss_peak"]
    True
    """
    peak = peak_memory()
    if not _STATUS.is_file():  # Without /proc only the peak is known.
        return {} if peak is None else {"rss": peak, "rss_peak": peak}
    fields = dict(line.split(":", 1) for line in _STATUS.read_text().splitlines() if ":" in line)
    now = int(fields["VmRSS"].split()[0]) / 1024
    # The kernel updates the two counters at different times, so the peak may lag behind.
    return {"rss": now, "rss_peak": max(peak or 0.0, now)}


def peak_memory() -> float | None:
    """Return the highest memory use of the process so far, in MiB; None if unknown."""
    try:
        import resource
    except ImportError:  # Windows.
        return None
    unit = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes, others kilobytes.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / MIB


def device_memory(device: torch.device) -> dict[str, float]:
    """Return what tensors and torch's cache use on a device, in MiB; empty for a CPU."""
    if device.type == "cuda":
        return {
            "device": torch.cuda.memory_allocated(device) / MIB,
            "device_peak": torch.cuda.max_memory_allocated(device) / MIB,
            "device_reserved": torch.cuda.memory_reserved(device) / MIB,
        }
    if device.type == "mps":
        return {
            # torch keeps no peak for this device.
            "device": torch.mps.current_allocated_memory() / MIB,
            "device_reserved": torch.mps.driver_allocated_memory() / MIB,
        }
    return {}


def memory_summary(device: torch.device) -> str:
    """Describe the memory of host and device in a few lines, with torch's own table for CUDA."""
    numbers = host_memory() | device_memory(device)
    lines = [f"{name:<16}{number:>12.1f} MiB" for name, number in numbers.items()]
    if device.type == "cuda":
        lines.append(torch.cuda.memory_summary(device))
    return "\n".join(lines) + "\n"
