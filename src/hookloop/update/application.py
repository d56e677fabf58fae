"""The two calls to an optimizer, `zero_grad` and `step`, without what torch wraps around them.

`Optimizer.step` opens a mark for the profiler and looks for hooks of torch's, which takes 10 us
where the update of a tiny model takes 14; `zero_grad` has a mark too, for 7 us. With no profiler
and no such hook the optimizer's own function is called directly, with the same bits. For a method
that somebody replaced, or a torch that differs, the ordinary call is made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import torch
from torch.optim import Optimizer
from torch.optim import optimizer as torch_optimizer

from hookloop.errors import ModelError, nearest

try:  # A private name of torch's. Without it every call takes the ordinary way.
    from torch._C._autograd import _profiler_enabled as _is_profiling
except ImportError:

    def _is_profiling() -> bool:
        return True


_GLOBAL_HOOKS = [
    getattr(torch_optimizer, name, {"unknown": None})
    for name in ("_global_optimizer_pre_hooks", "_global_optimizer_post_hooks")
]


def zero_optimizer(optimizer: Optimizer) -> None:
    """Drop the gradients of the last update."""
    method = optimizer.zero_grad
    if getattr(method, "__func__", None) is not Optimizer.zero_grad or _is_profiling():
        method()
        return
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            parameter.grad = None  # As torch does by default; filling with zeros takes longer.


def step_optimizer(optimizer: Optimizer) -> None:
    """Step an optimizer."""
    if _is_profiling() or (own := _own_step(optimizer)) is None:
        optimizer.step()
        return
    # A scheduler's wrapper around the step notes here that there was one, and warns otherwise.
    optimizer._opt_called = True  # type: ignore[attr-defined]
    own(optimizer)


def _own_step(optimizer: Optimizer) -> Callable[[Optimizer], object] | None:
    """Return the function inside torch's wrapper, unless the wrapper has something to do."""
    on_instance = vars(optimizer).get("step")
    if on_instance is not None and not hasattr(on_instance, "_wrapped_by_lr_sched"):
        return None
    on_class = type(optimizer).step
    if not hasattr(on_class, "hooked") or any(_GLOBAL_HOOKS):
        return None
    try:
        if optimizer._optimizer_step_pre_hooks or optimizer._optimizer_step_post_hooks:
            return None
    except AttributeError:  # A torch that keeps them elsewhere.
        return None
    return cast("Callable[[Optimizer], object] | None", getattr(on_class, "__wrapped__", None))


def make_scaler(precision: str, device: torch.device) -> torch.amp.GradScaler | None:
    """Return the loss scaler that half precision needs."""
    if precision not in ("fp32", "bf16", "fp16"):
        options = ("fp32", "bf16", "fp16")
        raise ModelError(
            f"precision={precision!r}: write fp32, bf16 or fp16.{nearest(str(precision), options)}",
            argument="precision",
        )
    # bfloat16 has the range of float32, so its gradients do not vanish and need no scaling.
    return torch.amp.GradScaler(device.type) if precision == "fp16" else None
