"""Move batches to the device: at once, or to a GPU while it still computes.

The loop never waits for the GPU between intervals, so it runs ahead of it: when it asks for a
batch, the GPU is busy with earlier ones. A copy on a separate stream, from pinned memory, runs
meanwhile; on the stream of the computations it would wait its turn. No batch is read early for
this, so the random numbers and the position in the data stay the same.

This was tested on a CPU with stand-ins for the streams, and has not run on a GPU yet.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from hookloop.data.batch import move_tensors, to_device

Transfer = Callable[[object], object]


def make_transfer(device: torch.device) -> Transfer | None:
    """Return a function that moves a batch to a device, or None for the CPU."""
    if device.type == "cpu":
        return None
    return SideStream(device) if device.type == "cuda" else partial(to_device, device=device)


class SideStream:
    """Copies batches to a GPU on a stream of its own.

    Args:
        device: The GPU.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def __call__(self, batch: object) -> object:
        """Queue the copy; computations that are queued from now on wait for it."""
        current = torch.cuda.current_stream(self._device)

        def copy(tensor: Tensor) -> Tensor:
            with torch.cuda.stream(self._stream):
                moved = _pinned(tensor).to(self._device, non_blocking=True)
            # The memory belongs to the side stream. Without this, torch could reuse it for a later
            # copy while the current stream still computes with it.
            moved.record_stream(current)
            return moved

        moved = move_tensors(batch, self._device, copy)
        current.wait_stream(self._stream)
        return moved


def _pinned(tensor: Tensor) -> Tensor:
    """Copy a tensor to pinned memory, unless a loader has already done so."""
    return tensor if tensor.device.type != "cpu" or tensor.is_pinned() else tensor.pin_memory()
