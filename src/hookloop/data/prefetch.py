"""How batches reach the device: at once, or on a GPU while it still computes.

The loop never waits for the GPU between intervals, so it runs ahead of it: when it asks for a
batch, the GPU is busy with earlier ones. A copy that is queued on a stream of its own, out of
pinned memory, takes place meanwhile; on the stream of the computations it would wait its turn.
Nothing is read ahead of its time for that, so random numbers and the place in the data stay what
they would be without.

This has been tested on a CPU with stand-ins for the streams, and has not run on a GPU yet.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from hookloop.data.batch import move_tensors, to_device

Move = Callable[[object], object]


def mover_of(device: torch.device) -> Move | None:
    """Return what brings a batch to a device, or None where it is already."""
    if device.type == "cpu":
        return None
    return SideStream(device) if device.type == "cuda" else partial(to_device, device=device)


class SideStream:
    """Copies batches to a GPU on a stream of its own.

    Args:
        device: Where to.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def __call__(self, batch: object) -> object:
        """Queue the copy, and let what is computed from now on wait for it."""
        current = torch.cuda.current_stream(self._device)

        def copy(tensor: Tensor) -> Tensor:
            with torch.cuda.stream(self._stream):
                moved = _pinned(tensor).to(self._device, non_blocking=True)
            # Its memory belongs to the side stream, which must not use it again too early.
            moved.record_stream(current)
            return moved

        moved = move_tensors(batch, self._device, copy)
        current.wait_stream(self._stream)
        return moved


def _pinned(tensor: Tensor) -> Tensor:
    """Put a tensor into memory that the GPU reads by itself; a loader may have done so already."""
    return tensor if tensor.device.type != "cpu" or tensor.is_pinned() else tensor.pin_memory()
