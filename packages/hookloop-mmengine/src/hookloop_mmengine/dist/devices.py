"""``mmengine.dist``: the devices of data that processes exchange."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from hookloop_mmengine.dist.processes import get_backend

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

_WRONG = "data should be a Tensor, sequence of tensor or dict, but got {}"


def get_data_device(data: Any) -> torch.device:  # noqa: ANN401 - a batch of any kind
    """Return the device of all tensors in nested data."""
    if isinstance(data, Tensor):
        return data.device
    if isinstance(data, str) or not isinstance(data, Iterable):
        raise TypeError(_WRONG.format(data))
    inner = data.values() if isinstance(data, Mapping) else data
    found = {get_data_device(value) for value in inner}
    if not found:
        raise ValueError("data should not be empty.")
    if len(found) > 1:
        devices = " and ".join(sorted(str(device) for device in found))
        raise ValueError(f"device type in data should be consistent, but got {devices}")
    return found.pop()


def get_comm_device(group: ProcessGroup | None = None) -> torch.device:
    """Return the device on which processes exchange data."""
    if get_backend(group) == "nccl":
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")


def cast_data_device(data: Any, device: torch.device, out: Any = None) -> Any:  # noqa: ANN401
    """Return nested data on a device.

    Args:
        data: Tensors in dicts, lists, tuples or sets.
        device: The device.
        out: Data of the same form whose tensors get the values.
    """
    if out is not None and type(out) is not type(data):
        raise TypeError(f"out should be the same type with data: {type(data)}, not {type(out)}")
    if isinstance(out, set):
        raise TypeError("out should not be a set")
    if isinstance(data, Tensor):
        moved = data.to(device)
        if out is not None:
            out.copy_(moved)
        return moved
    if isinstance(data, str | np.ndarray) or not isinstance(data, Iterable):
        raise TypeError(_WRONG.format(data))
    values = list(data.values() if isinstance(data, Mapping) else data)
    if not values:
        raise ValueError("data should not be empty")
    if out is not None and len(out) != len(values):
        raise ValueError(f"data and out should have one length, not {len(values)} and {len(out)}")
    places = [None] * len(values)
    if out is not None:
        places = [out[key] for key in (data if isinstance(data, Mapping) else range(len(out)))]
    inner = [cast_data_device(*pair) for pair in zip(values, [device] * len(values), places, strict=True)]
    kind: Any = type(data)
    return kind(zip(data, inner, strict=True)) if isinstance(data, Mapping) else kind(inner)
