"""A copy of a checkpoint in memory: the only part of a save that training waits for."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import cast

import torch
from torch import Tensor

from hookloop.checkpoint.shards.dtensors import is_sharded, local_part
from hookloop.checkpoint.store.limits import DEEPEST
from hookloop.errors import CheckpointError
from hookloop.secret import redact

Path = tuple[object, ...]

# Types that `torch.load(weights_only=True)` accepts. Others could be written but never read again.
_PLAIN = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device)


class Snapshot:
    """Copies the tensors of a checkpoint into memory that every save uses again.

    >>> snapshot, weights = Snapshot(), torch.ones(2)
    >>> taken = snapshot.take({"model": {"w": weights}})
    >>> weights.add_(1)
    tensor([2., 2.])
    >>> taken["model"]["w"], snapshot.nbytes
    (tensor([1., 1.]), 8)
    """

    def __init__(self) -> None:
        self._buffers: dict[Path, Tensor] = {}
        self.nbytes = 0

    def take(self, checkpoint: Mapping[str, object]) -> dict[str, object]:
        """Return the checkpoint with every tensor copied, over the copies of the last call.

        Raises:
            CheckpointError: If it holds an object that a file could not give back.
        """
        copying = _Copying(self._buffers)
        copied = cast("dict[str, object]", copying.walk(checkpoint, ()))
        # Nothing is overwritten before the walk has accepted everything.
        copying.copy()
        self._buffers = copying.used  # Buffers of tensors that are gone are released.
        self.nbytes = sum(local_part(buffer).nbytes for buffer in self._buffers.values())
        return copied


class _Copying:
    """One copy in progress: the buffers it may use again, and the tensors still to be copied."""

    def __init__(self, buffers: Mapping[Path, Tensor]) -> None:
        self._old = buffers
        self.used: dict[Path, Tensor] = {}
        self._seen: dict[tuple[object, ...], Tensor] = {}
        self._pairs: list[tuple[Tensor, Tensor]] = []

    def walk(self, value: object, path: Path) -> object:
        """Rebuild a nested value with buffers in place of tensors."""
        if isinstance(value, Tensor):
            return self._tensor(value.detach(), path)
        if type(value) in _PLAIN:
            return value if type(value) is not str else redact(value)
        if len(path) >= DEEPEST and isinstance(value, Mapping | list | tuple | set):
            where = ".".join(str(step) for step in path[:3])
            raise CheckpointError(
                f"The state '{where}' has containers more than {DEEPEST} deep, which no resume "
                "would accept: make it flatter."
            )
        if isinstance(value, Mapping):
            return self._mapping(value, path)
        if isinstance(value, list | tuple):
            parts = [self.walk(part, (*path, index)) for index, part in enumerate(value)]
            return parts if isinstance(value, list) else tuple(parts)
        if isinstance(value, set):
            return {self.walk(part, path) for part in value}
        return _number_or_text(value, path)

    def copy(self) -> None:
        """Fill the buffers."""
        with torch.no_grad():
            for buffer, source in self._pairs:
                local_part(buffer).copy_(local_part(source), non_blocking=True)
        # One wait for all copies from a GPU, instead of one for each.
        if any(source.is_cuda for _, source in self._pairs):
            torch.cuda.synchronize()

    def _mapping(self, value: Mapping[object, object], path: Path) -> dict[object, object]:
        is_module = hasattr(value, "_metadata")
        copied: dict[object, object] = {
            # Names of parameters come from the code. If one happens to equal a secret, replacing
            # it would make the checkpoint unusable.
            key if is_module else self.walk(key, path): self.walk(part, (*path, key))
            for key, part in value.items()
        }
        if is_module:  # load_state_dict reads the versions of the modules from here.
            copied = OrderedDict(copied)
            vars(copied)["_metadata"] = value._metadata  # type: ignore[attr-defined]
        return copied

    def _tensor(self, value: Tensor, path: Path) -> Tensor:
        if value.layout is not torch.strided or value.is_quantized:
            return value.to("cpu", copy=True)
        # Tied weights share memory, and must share it in the file as well. Empty tensors all have
        # the address 0, so they say nothing about sharing. So has a DTensor: its part has another.
        local = local_part(value)
        identity = (local.data_ptr(), local.shape, local.stride(), *_form(value))
        if local.numel() and identity in self._seen:
            return self._seen[identity]
        buffer = self._buffer(value, path)
        self.used[path] = self._seen[identity] = buffer
        self._pairs.append((buffer, value))
        return buffer

    def _buffer(self, like: Tensor, path: Path) -> Tensor:
        kept = self._old.get(path)
        if kept is not None and _fits(kept, like):
            return kept
        pinned = like.is_cuda  # A copy from the GPU is asynchronous only into pinned memory.
        return torch.empty_like(like, device="cpu", pin_memory=pinned)


def _form(value: Tensor) -> tuple[object, ...]:
    """Describe a tensor without its numbers, for a DTensor with the way it is sharded."""
    form = (value.dtype, value.shape, value.stride())
    if not is_sharded(value):
        return form
    return (*form, value.device_mesh, value.placements)  # type: ignore[attr-defined]


def _fits(kept: Tensor, like: Tensor) -> bool:
    return _form(kept) == _form(like)


def _base_of(value: int | float | complex) -> type[int] | type[float] | type[complex]:
    return int if isinstance(value, int) else float if isinstance(value, float) else complex


def _number_or_text(value: object, path: Path) -> object:
    """Turn a number of NumPy or of an enum into a plain one; reject everything else."""
    if isinstance(value, str):
        return str.__str__(redact(value))
    if isinstance(value, int | float | complex):
        return _base_of(value)(value)  # type: ignore[arg-type]
    item = getattr(value, "item", None)
    if callable(item) and getattr(value, "ndim", None) == 0:
        return item()
    where = ".".join(str(step) for step in path)
    raise CheckpointError(
        f"The state '{where}' holds a {type(value).__name__}, which cannot be loaded from a "
        "checkpoint: use tensors, numbers, text and plain containers."
    )
