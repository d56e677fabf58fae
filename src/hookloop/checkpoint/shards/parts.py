"""A checkpoint in two halves: large tensors, which all ranks write, and the rest of the state.

The state of the model and of the optimizers, and whatever else is sharded, goes into torch's own
format of shards. The rest is the same on all ranks and becomes a small file.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import cast

from torch import Tensor

from hookloop.checkpoint.shards.dtensors import is_sharded
from hookloop.checkpoint.state.shape import Each, Named, find_mismatch, is_mapping

Path = tuple[str | int, ...]

MODEL, OPTIMIZERS = "model", "optimizers"

SHAPE = {"state": is_mapping, "paths": Named(Each(lambda step: type(step) in (str, int)))}
"""What the small file holds: the state without the tensors, and the place of each in it."""


def split(
    checkpoint: Mapping[str, object],
) -> tuple[dict[str, object], dict[str, Tensor], dict[str, Path]]:
    """Take the tensors out of a checkpoint.

    Returns:
        The rest; the tensors by key, which is the path joined with dots; and the paths by key.

    >>> import torch
    >>> rest, tensors, paths = split({"model": {"a.b": torch.ones(1)}, "rng": [1]})
    >>> rest, list(tensors), paths
    ({'model': {}, 'rng': [1]}, ['model.a.b'], {'model.a.b': ('model', 'a.b')})
    """
    tensors: dict[str, Tensor] = {}
    paths: dict[str, Path] = {}

    def walk(value: object, path: Path) -> object:
        if isinstance(value, Tensor) and _belongs_to_shards(value, path):
            key = ".".join(map(str, path))
            if key in tensors:
                raise ValueError(f"two tensors are named '{key}'")
            tensors[key], paths[key] = value, path
            return _TAKEN
        if isinstance(value, Mapping):
            parts = {key: walk(part, (*path, key)) for key, part in value.items()}
            left = {key: part for key, part in parts.items() if part is not _TAKEN}
            return _like(value, left)
        if isinstance(value, list | tuple):
            listed = [walk(part, (*path, index)) for index, part in enumerate(value)]
            # A list keeps its length: None stands where a tensor was.
            has_lost = any(part is _TAKEN for part in listed)
            listed = [None if part is _TAKEN else part for part in listed]
            return listed if isinstance(value, list) or has_lost else tuple(listed)
        return value

    return cast("dict[str, object]", walk(checkpoint, ())), tensors, paths


def put_back(state: dict[str, object], path: Path, tensor: object) -> None:
    """Put a tensor where `split` has taken it from.

    Raises:
        ValueError: If there is no such place.
    """
    *steps, last = path
    holder: object = state
    for step in steps:
        holder = _inner(holder, step, path)
    is_free = isinstance(holder, dict) and last not in holder
    if isinstance(holder, list) and type(last) is int and 0 <= last < len(holder):
        is_free = holder[last] is None
    if not is_free:
        raise ValueError(f"there is no place for the tensor {'.'.join(map(str, path))!r}")
    holder[last] = tensor  # type: ignore[index]


def nested(tensors: Mapping[str, Tensor], paths: Mapping[str, Path]) -> dict[str, object]:
    """Return tensors as mappings in mappings, in which torch finds the keys of `split`."""
    tree: dict[str, object] = {}
    for key, tensor in tensors.items():
        *steps, last = map(str, paths[key])
        holder = tree
        for step in steps:
            holder = cast("dict[str, object]", holder.setdefault(step, {}))
        holder[last] = tensor
    return tree


def check_rest(content: object) -> None:
    """Reject the contents of a small file that are not what `split` returned."""
    if wrong := find_mismatch(content, SHAPE, "content"):
        raise ValueError(f"its '{wrong}' is not what was saved")


def _belongs_to_shards(value: Tensor, path: Path) -> bool:
    if is_sharded(value) or path[0] == MODEL:
        return True
    # A count of steps for each parameter would take a kilobyte each as a shard.
    return path[0] == OPTIMIZERS and path[2:3] == ("state",) and value.dim() > 0


def _like(value: Mapping[object, object], left: dict[object, object]) -> dict[object, object]:
    if not hasattr(value, "_metadata"):
        return left
    kept: OrderedDict[object, object] = OrderedDict(left)
    vars(kept)["_metadata"] = value._metadata  # The versions of a model's parts.
    return kept


def _inner(holder: object, step: str | int, path: Path) -> object:
    if isinstance(holder, dict) and step in holder:
        return holder[step]
    if isinstance(holder, list) and type(step) is int and 0 <= step < len(holder):
        return holder[step]
    raise ValueError(f"there is no place for the tensor {'.'.join(map(str, path))!r}")


_TAKEN = object()
