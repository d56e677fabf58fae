"""Checkpoints of ``classy_vision.generic.util``: files in ClassyVision's own form.

A resume of this engine does not use them: it has its own checkpoints, which hold more.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch

from hookloop.dialects import drafted
from hookloop_dialects.vissl.classy_vision.generic.distributed_util import (
    broadcast_object,
    is_primary,
)

if TYPE_CHECKING:
    from hookloop_dialects.vissl.task import Task

CHECKPOINT_FILE = "checkpoint.torch"

_log = logging.getLogger("classy_vision")


def get_checkpoint_dict(
    task: Task, input_args: Mapping[str, Any] | None, deep_copy: bool = False
) -> dict[str, Any]:
    """Return the content of a checkpoint: the state of the task, and the arguments of the run."""
    state = task.get_classy_state(deep_copy=deep_copy)
    return {"input_args": input_args, "classy_state_dict": state}


def save_checkpoint(
    checkpoint_folder: str, state: object, checkpoint_file: str = CHECKPOINT_FILE
) -> str:
    """Write a checkpoint, complete or not at all, and return its path."""
    folder = Path(checkpoint_folder)
    folder.mkdir(parents=True, exist_ok=True)
    with drafted(folder / checkpoint_file) as draft:
        torch.save(state, draft)
    return f"{checkpoint_folder}/{checkpoint_file}"


def load_checkpoint(
    checkpoint_path: str, device: torch.device | str = "cpu"
) -> dict[str, Any] | None:
    """Return the content of a file, or of ``checkpoint.torch`` in a directory; None without one.

    Only tensors, numbers, text and containers are loaded: a file that needs more is rejected.
    """
    path = Path(checkpoint_path or "")
    path = path / CHECKPOINT_FILE if path.is_dir() else path
    if not checkpoint_path or not path.is_file():
        _log.warning("There is no checkpoint '%s'.", path)
        return None
    found = torch.load(path, map_location=torch.device(device), weights_only=True)
    return cast("dict[str, Any]", found)


def load_and_broadcast_checkpoint(
    checkpoint_path: str, device: torch.device | str = "cpu"
) -> dict[str, Any] | None:
    """Load a checkpoint in one process and send it to all; all have to call this."""
    found = load_checkpoint(checkpoint_path, device) if is_primary() else None
    return cast("dict[str, Any] | None", broadcast_object(found))


def flatten_dict(value_dict: Mapping[str, Any], prefix: str = "", sep: str = "_") -> dict[str, Any]:
    """Return nested entries under joined names.

    >>> flatten_dict({"top_1": {0: 0.5}}, prefix="accuracy")
    {'accuracy_top_1_0': 0.5}
    """
    flat: dict[str, Any] = {}
    for key, value in value_dict.items():
        name = f"{prefix}{sep}{key}" if prefix else key
        if isinstance(value, Mapping):
            flat |= flatten_dict(value, str(name), sep)
        else:
            flat[name] = value
    return flat
