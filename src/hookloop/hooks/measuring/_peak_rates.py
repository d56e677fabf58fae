"""What GPUs can compute at most, as their makers state it for dense matrices."""

from __future__ import annotations

import torch

# In 10^12 operations per second: half precision, fp32 by way of TF32, and fp32. The first name that
# is part of the device's name counts, so a longer name stands before a shorter one.
PEAKS: dict[str, tuple[float, float, float]] = {
    "B200": (2250.0, 1100.0, 75.0),
    "H200": (989.4, 494.7, 66.9),
    "H100 NVL": (835.5, 417.8, 60.0),
    "H100 PCIe": (756.0, 378.0, 51.2),
    "H100": (989.4, 494.7, 66.9),
    "A100": (312.0, 156.0, 19.5),
    "A800": (312.0, 156.0, 19.5),
    "A6000": (154.8, 77.4, 38.7),
    "A40": (149.7, 74.8, 37.4),
    "A30": (165.0, 82.0, 10.3),
    "A10G": (70.0, 35.0, 35.0),
    "A10": (125.0, 62.5, 31.2),
    "L40S": (362.0, 183.0, 91.6),
    "L40": (181.0, 90.5, 90.5),
    "L4": (121.0, 60.5, 30.3),
    "T4": (65.0, 8.1, 8.1),
    "V100": (125.0, 15.7, 15.7),
    "RTX 4090": (165.2, 82.6, 82.6),
    "RTX 3090": (71.0, 35.6, 35.6),
    "MI300X": (1307.4, 653.7, 163.4),
}
NO_BFLOAT16 = ("T4", "V100")


def peak_of(device: str, dtype: torch.dtype, *, uses_tf32: bool) -> float | None:
    """Return the operations per second of a device; None if they are not known.

    Args:
        device: The name that torch gives it.
        dtype: In which numbers matrices are multiplied.
        uses_tf32: Whether torch may multiply matrices of fp32 with less precision.

    >>> peak_of("NVIDIA A100-SXM4-80GB", torch.bfloat16, uses_tf32=False)
    312000000000000.0
    """
    name = next((name for name in PEAKS if name in device), None)
    if name is None or (dtype == torch.bfloat16 and name in NO_BFLOAT16):
        return None
    half, tf32, full = PEAKS[name]
    if dtype in (torch.float16, torch.bfloat16):
        return half * 1e12
    if dtype == torch.float32:
        return (tf32 if uses_tf32 else full) * 1e12
    return None


def peak_in_use(device: torch.device, dtype: torch.dtype) -> tuple[str, float | None]:
    """Return the name of a device, and its operations per second, or None."""
    if device.type != "cuda":
        return device.type, None
    name = torch.cuda.get_device_name(device)
    uses_tf32 = torch.get_float32_matmul_precision() != "highest"
    return name, peak_of(name, dtype, uses_tf32=uses_tf32)
