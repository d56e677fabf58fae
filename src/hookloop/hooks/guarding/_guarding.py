"""What the hooks share that guard a training against numbers that are not finite."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from math import inf
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Tensor

from hookloop.checkpoint.shards.dtensors import local_part
from hookloop.hooks._many_tensors import norms_of

if TYPE_CHECKING:
    from hookloop.engine.run import Run

Label = TypeVar("Label", bound=Hashable)


def largest_of(tensors: Mapping[Label, Tensor]) -> dict[Label, Tensor]:
    """Return the largest magnitude in each tensor; nothing is read from the device.

    NaN and infinity pass through, and nothing can overflow. Of a sharded tensor each rank looks at
    its own part; a part without numbers is left out.
    """
    parts = {label: local_part(tensor.detach()) for label, tensor in tensors.items()}
    found = {label: part for label, part in parts.items() if part.numel()}
    by_device: dict[torch.device, list[Label]] = {}
    for label, part in found.items():
        by_device.setdefault(part.device, []).append(label)
    return {
        label: norm
        for together in by_device.values()
        for label, norm in zip(
            together, norms_of([found[label] for label in together], inf), strict=True
        )
    }


def gradients_of(model: torch.nn.Module) -> dict[str, Tensor]:
    """Return the gradients that a model has, by the name of the parameter."""
    return {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


def first_damaged(model: torch.nn.Module) -> str | None:
    """Return the name of the first trainable parameter with NaN or infinity, or None.

    Updates cannot damage the others.
    """
    trainable = {name: p for name, p in model.named_parameters() if p.requires_grad}
    largest = largest_of(trainable)
    if not largest:
        return None
    home = next(iter(largest.values())).device
    # The usual case takes a single read.
    if torch.stack([norm.to(home, torch.float32) for norm in largest.values()]).isfinite().all():
        return None
    return next(name for name, p in trainable.items() if name in largest and _is_bad(p))


def _is_bad(parameter: Tensor) -> bool:
    return not bool(local_part(parameter.detach()).isfinite().all())


def is_dropping(run: Run) -> bool:
    """Return whether a hook drops bad updates, and judges how many are too many."""
    return any(hook.guards_by == "dropping" for hook in run.hooks)
