"""A copy of a checkpoint in memory: the only part of a save that training waits for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import torch
from torch import Tensor


class Snapshot:
    """Copies the tensors of a checkpoint into memory that is kept from one save to the next.

    >>> snapshot, weights = Snapshot(), torch.ones(2)
    >>> taken = snapshot.take({"model": {"w": weights}})
    >>> weights.add_(1)
    tensor([2., 2.])
    >>> taken["model"]["w"], snapshot.nbytes
    (tensor([1., 1.]), 8)
    """

    def __init__(self) -> None:
        self._buffers: dict[tuple[object, ...], Tensor] = {}
        self.nbytes = 0

    def take(self, checkpoint: Mapping[str, object]) -> dict[str, object]:
        """Return the checkpoint with every tensor copied, over the copies of the last call."""
        sources: list[Tensor] = []
        buffers: list[Tensor] = []
        used: dict[tuple[object, ...], Tensor] = {}
        seen: dict[tuple[object, ...], Tensor] = {}

        def walk(value: object, path: tuple[object, ...]) -> object:
            if isinstance(value, Tensor):
                # Tied weights share their memory, and go on to share it in the file.
                same = (value.data_ptr(), value.dtype, value.shape, value.stride())
                if value.numel() and same in seen:
                    return seen[same]
                buffer = self._buffer(value, path)
                used[path] = seen[same] = buffer
                sources.append(value.detach())
                buffers.append(buffer)
                return buffer
            if isinstance(value, Mapping):
                return {key: walk(part, (*path, key)) for key, part in value.items()}
            if isinstance(value, list | tuple):
                parts = [walk(part, (*path, place)) for place, part in enumerate(value)]
                return parts if isinstance(value, list) else tuple(parts)
            return value

        copied = cast("dict[str, object]", walk(checkpoint, ()))
        _copy(buffers, sources)
        self._buffers = used  # What is not part of the state any more is given back.
        self.nbytes = sum(buffer.nbytes for buffer in used.values())
        return copied

    def _buffer(self, like: Tensor, path: tuple[object, ...]) -> Tensor:
        kept = self._buffers.get(path)
        if kept is not None and kept.shape == like.shape and kept.dtype == like.dtype:
            return kept
        pinned = like.is_cuda  # Only into pinned memory does a copy from the GPU not block.
        return torch.empty(like.shape, dtype=like.dtype, pin_memory=pinned)


def _copy(buffers: list[Tensor], sources: list[Tensor]) -> None:
    with torch.no_grad():
        for buffer, source in zip(buffers, sources, strict=True):
            buffer.copy_(source, non_blocking=True)
    if any(source.is_cuda for source in sources):
        torch.cuda.synchronize()
