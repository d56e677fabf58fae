"""How the updates of an iteration are built from what the user brings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Literal

import torch
from torch import Tensor

from hookloop.core.update import Step, Update, loss_in_output
from hookloop.data.microbatches import is_sum
from hookloop.errors import ModelError, nearest
from hookloop.trainer.computing import forward_all, forward_inputs, forward_step, loss_from

Precision = Literal["fp32", "bf16", "fp16"]
Loss = Callable[..., Tensor]


def make_scaler(precision: Precision, device: torch.device) -> torch.amp.GradScaler | None:
    """Return the loss scaler that half precision needs."""
    if precision not in ("fp32", "bf16", "fp16"):
        options = ("fp32", "bf16", "fp16")
        raise ModelError(
            f"precision={precision!r}: write fp32, bf16 or fp16.{nearest(str(precision), options)}",
            argument="precision",
        )
    # bfloat16 has the range of float32, so its gradients do not vanish and need no scaling.
    return torch.amp.GradScaler(device.type) if precision == "fp16" else None


def autocast(precision: Precision, device: torch.device) -> AbstractContextManager[None] | None:
    """Return the context in which forward and loss are computed, or None for full precision."""
    if precision == "fp32":
        return None
    dtype = torch.bfloat16 if precision == "bf16" else torch.float16
    return torch.autocast(device.type, dtype=dtype)


def make_updates(
    loss: Loss | None,
    step: Step | Update | Mapping[str, Step] | None,
    optimizers: Mapping[str, torch.optim.Optimizer],
    *,
    clip_norm: float | None = None,
    scaler: torch.amp.GradScaler | None = None,
    context: AbstractContextManager[None] | None = None,
) -> list[Update]:
    """Decide how the loss is computed, and return the updates of an iteration.

    Args:
        loss: A function of output and targets.
        step: A function of run and batch, several by optimizer, or an update of the user's own.
        optimizers: By name.
        clip_norm: Limit of the gradients' norm, if any.
        scaler: Scales the loss, with half precision.
        context: In which output and loss are computed, if in any.
    """
    if loss is not None and step is not None:
        raise ModelError(
            "loss= and step= are both given: a step computes the loss itself.", argument="loss"
        )
    # Written with `not`, so that NaN is rejected too.
    if clip_norm is not None and not clip_norm > 0:
        raise ModelError(
            f"clip_norm must be above 0, not {clip_norm}: None does not clip.",
            argument="clip_norm",
        )
    if scaler is not None:
        for optimizer in optimizers.values():
            # torch warns of a schedule that steps before its optimizer. A scaler may skip a step,
            # which is not a mistake.
            optimizer._opt_called = True  # type: ignore[attr-defined]
    for update in (updates := _choose(loss, step, optimizers)):
        update.may_skip = step is not None
        if update is not step:  # An update of the user's own clips and scales by itself.
            update.clip_norm, update.scaler = clip_norm, scaler
        update.compute_within(context)
    return updates


def _choose(
    loss: Loss | None,
    step: Step | Update | Mapping[str, Step] | None,
    optimizers: Mapping[str, torch.optim.Optimizer],
) -> list[Update]:
    if isinstance(step, Update):
        return [step]
    if isinstance(step, Mapping):
        _check_names(step, optimizers)
        return [
            Update(name, forward_step(own_step), loss_in_output, [optimizers[name]])
            for name, own_step in step.items()
        ]
    every_optimizer = list(optimizers.values())
    if step is not None:
        return [Update("", forward_step(step), loss_in_output, every_optimizer)]
    if loss is None:  # The model returns it.
        return [Update("", forward_all, loss_in_output, every_optimizer)]
    update = Update("", forward_inputs, loss_from(loss), every_optimizer)
    # Losses of microbatches that are sums are added up, those that are means are averaged.
    update.sums = is_sum(loss)
    return [update]


def _check_names(step: Mapping[str, Step], optimizers: Mapping[str, torch.optim.Optimizer]) -> None:
    if unknown := set(step) - set(optimizers):
        raise ModelError(
            f"step= names {', '.join(sorted(unknown))}, but the optimizers are "
            f"{', '.join(optimizers) or 'none'}: the names must agree.",
            argument="step",
        )
