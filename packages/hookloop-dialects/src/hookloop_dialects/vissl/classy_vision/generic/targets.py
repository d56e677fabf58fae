"""Targets and checks of ``classy_vision.generic.util``."""

from __future__ import annotations

import torch
from torch import Tensor


def convert_to_one_hot(targets: Tensor, classes: int) -> Tensor:
    """Return class numbers, of shape (samples, targets per sample), as 0 and 1 per class."""
    if int(targets.max()) >= classes:
        raise AssertionError(f"a target is {int(targets.max())}, but there are {classes} classes")
    one_hot = torch.zeros(targets.shape[0], classes, dtype=torch.long, device=targets.device)
    return one_hot.scatter_(1, targets.long(), 1)


def maybe_convert_to_one_hot(target: Tensor, model_output: Tensor) -> Tensor:
    """Return targets as one number per class; those that already are, also soft ones, stay."""
    if target.ndim == 1 or (target.ndim == 2 and target.shape[1] == 1):
        target = convert_to_one_hot(target.reshape(-1, 1), model_output.shape[1])
    if target.shape != model_output.shape:
        raise AssertionError(
            f"the targets have the shape {tuple(target.shape)}, the output has "
            f"{tuple(model_output.shape)}"
        )
    return target


def is_pos_int(number: object) -> bool:
    """Return whether it is an integer above 0."""
    return type(number) is int and number > 0
