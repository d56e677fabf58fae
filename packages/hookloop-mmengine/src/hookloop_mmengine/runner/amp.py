"""``mmengine.runner.autocast``: mixed precision for a block of code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def autocast(
    device_type: str | None = None,
    dtype: torch.dtype | None = None,
    enabled: bool = True,
    cache_enabled: bool | None = None,
) -> Iterator[None]:
    """Compute in mixed precision; by default on the GPU if there is one."""
    # MMEngine chooses the device, which torch.autocast requires to be named.
    kind = device_type or ("cuda" if torch.cuda.is_available() else "cpu")
    with torch.autocast(kind, dtype=dtype, enabled=enabled, cache_enabled=cache_enabled):
        yield
