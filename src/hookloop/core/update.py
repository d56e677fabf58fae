"""Forward, loss, backward, update: the work of an iteration.

An update steps one group of optimizers from one loss. Ordinary training has a single one; a GAN has
one per optimizer, made one after the other within an iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal, NoReturn, cast

import torch
from torch import Tensor
from torch._C._autograd import _profiler_enabled as _is_profiling
from torch.optim import Optimizer
from torch.optim import optimizer as torch_optimizer

from hookloop.data.batch import is_pair
from hookloop.data.description import describe
from hookloop.data.microbatches import (
    Microbatches,
    is_scalar,
    is_sum,
    loss_or_zero,
    weight_in,
)
from hookloop.errors import DataError, ModelError
from hookloop.metrics.weighted import Weight

if TYPE_CHECKING:
    from hookloop.core.run import Run
    from hookloop.metrics.series import Series

Precision = Literal["fp32", "bf16", "fp16"]
Loss = Callable[..., Tensor]
Step = Callable[["Run", Any], Any]
Forward = Callable[["Run"], object]
LossOf = Callable[["Run"], Tensor | None]


class Update:
    """One update: how its loss is computed and which optimizers step.

    Args:
        name: Prefix of its loss in the metrics; empty when it is the only update.
        forward: Computes ``run.output`` from ``run.batch``.
        loss_of: Computes ``run.loss`` from ``run.output``; None skips the update.
        optimizers: Those that step.
        clip_norm: Limit of the gradients' norm, if any.
        scaler: Scales the loss, with half precision.
    """

    def __init__(
        self,
        name: str,
        forward: Forward,
        loss_of: LossOf,
        optimizers: Sequence[torch.optim.Optimizer],
        *,
        clip_norm: float | None = None,
        scaler: torch.amp.GradScaler | None = None,
    ) -> None:
        self.loss_name = f"{name}_loss" if name else "loss"
        self.forward = forward
        self.loss_of = loss_of
        self.returns_loss = loss_of is _loss_in_output
        self.sums = False  # Whether the loss is a sum over a batch; otherwise it is a mean.
        self.optimizers = tuple(optimizers)
        self.clip_norm = clip_norm
        self.scaler = scaler
        self._losses: Series | None = None

    @property
    def keeps_gradients(self) -> bool:
        """Whether it makes the update its own way, and gradients may wait for it."""
        return type(self).zero_grad is not Update.zero_grad

    def zero_grad(self) -> None:
        """Forget the gradients of the last update."""
        for optimizer in self.optimizers:
            zero_optimizer(optimizer)

    def record(self, run: Run, loss: Tensor) -> None:
        """Put the loss, and what else a step returned, into the metric store; nothing is read."""
        losses = self._losses or self.begin(run, loss)
        losses.add(loss.detach())
        if self.returns_loss and isinstance(run.output, Mapping):
            for name, value in run.output.items():
                if name not in ("loss", "weight") and is_scalar(value):
                    run.metrics.put(f"train/{name}", value)

    def begin(self, run: Run, loss: Tensor) -> Series:
        """Check the first loss, and return the series of all."""
        if self._losses is None:
            check_loss(loss, self.loss_name)
            self._losses = run.metrics.series(f"train/{self.loss_name}")
        return self._losses

    def weight(self, run: Run) -> Weight | None:
        """Return what the step said that the batch counts for, or None if it did not."""
        return weight_in(run.output) if self.returns_loss else None

    def backward(self, loss: Tensor) -> None:
        """Add the gradients of one microbatch."""
        if self.scaler is not None:
            loss = self.scaler.scale(loss)
        loss.backward()  # type: ignore[no-untyped-call]

    def complete(self, run: Run, group: Microbatches) -> None:
        """Make gradients, loss and other numbers those of the whole batch, and record them."""
        group.correct(self._parameters())
        last, run.output = run.output, group.output(run.output)
        run.loss = group.loss()
        self.record(run, run.loss)
        run.output = last

    def unscale(self) -> None:
        """Bring scaled gradients to their true size, so that hooks and clipping see that."""
        if self.scaler is not None:
            for optimizer in self.optimizers:
                self.scaler.unscale_(optimizer)

    def apply(self, run: Run) -> None:
        """Clip, and let the optimizers step."""
        if self.clip_norm is not None:
            norm = torch.nn.utils.clip_grad_norm_(self._parameters(), self.clip_norm)
            run.metrics.series("train/grad_norm").add(norm)
        if self.scaler is None:
            for optimizer in self.optimizers:
                step_optimizer(optimizer)
            return
        for optimizer in self.optimizers:
            self.scaler.step(optimizer)
        self.scaler.update()

    def _parameters(self) -> list[Tensor]:
        return [
            parameter
            for optimizer in self.optimizers
            for group in optimizer.param_groups
            for parameter in group["params"]
        ]


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
    clip_norm: float | None,
    scaler: torch.amp.GradScaler | None,
) -> list[Update]:
    """Decide how the loss is computed from what the user brought."""
    if loss is not None and step is not None:
        raise ModelError("loss= and step= are both given: a step computes the loss itself.")
    if clip_norm is not None and not clip_norm > 0:
        raise ModelError(f"clip_norm must be above 0, not {clip_norm}: None does not clip.")
    if isinstance(step, Update):  # It makes the update its own way.
        return [step]
    everyone = list(optimizers.values())
    if scaler is not None:
        for one in everyone:  # A step that the scaler skips is no mistake of which torch may warn.
            one._opt_called = True  # type: ignore[attr-defined]
    if isinstance(step, Mapping):
        if unknown := set(step) - set(optimizers):
            raise ModelError(
                f"step= names {', '.join(sorted(unknown))}, but the optimizers are "
                f"{', '.join(optimizers) or 'none'}: the names must agree."
            )
        return [
            Update(
                name,
                _stepping(one),
                _loss_in_output,
                [optimizers[name]],
                clip_norm=clip_norm,
                scaler=scaler,
            )
            for name, one in step.items()
        ]
    forward: Forward
    loss_of: LossOf
    if step is not None:
        forward, loss_of = _stepping(step), _loss_in_output
    elif loss is not None:
        forward, loss_of = _forward_inputs, _computing(loss)
    else:
        forward, loss_of = _forward_all, _loss_in_output
    update = Update("", forward, loss_of, everyone, clip_norm=clip_norm, scaler=scaler)
    update.sums = is_sum(loss)
    return [update]


def check_loss(loss: object, loss_name: str) -> None:
    """Refuse, at the first iteration, a loss that cannot be trained on."""
    if not isinstance(loss, Tensor):
        raise ModelError(f"The {loss_name} is {type(loss).__name__}: it must be a scalar tensor.")
    if loss.ndim:
        raise ModelError(
            f"The {loss_name} has the shape {tuple(loss.shape)}: it must be a scalar. Reduce it, "
            "for example with .mean(), or reduction='mean' in the loss."
        )
    if not loss.requires_grad:
        raise ModelError(
            f"The {loss_name} depends on no trainable parameter: it was detached, or computed "
            "from something else than the model's output."
        )


def targets_of(batch: object) -> object:
    """What metrics compare the output with: the targets of a pair, otherwise the whole batch."""
    return batch[1] if is_pair(batch) else batch  # type: ignore[index]


def output_of(output: object) -> object:
    """What metrics look at: the ``output`` entry of a step's mapping, otherwise all of it."""
    return output["output"] if isinstance(output, Mapping) and "output" in output else output


def _forward_inputs(run: Run) -> object:
    batch = run.batch
    if is_pair(batch):
        return run.model(batch[0])
    if run.phase == "train":
        raise DataError(
            f"loss= needs batches of (inputs, targets), train_data gives {describe(batch)}: "
            "change the batches, or write step=."
        )
    return run.model(batch)


def _forward_all(run: Run) -> object:
    batch = run.batch
    if isinstance(batch, Mapping):
        output = run.model(**batch)
    else:
        output = run.model(*batch) if isinstance(batch, tuple | list) else run.model(batch)
    if output is None and run.phase == "train":
        _refuse_nothing("The model")
    return output


def _stepping(step: Step) -> Forward:
    def forward(run: Run) -> object:
        return step(run, run.batch)

    return forward


def _computing(loss: Callable[..., Tensor | None]) -> LossOf:
    def loss_of(run: Run) -> Tensor | None:
        batch = run.batch
        if not is_pair(batch):  # Test data without targets.
            return None
        value = loss(run.output, batch[1])
        return value if value is not None else _refuse_nothing("loss=")

    return loss_of


def _loss_in_output(run: Run) -> Tensor | None:
    output = run.output
    if isinstance(output, Mapping):
        if "loss" in output:
            given = cast("Tensor", output["loss"])
            return loss_or_zero(given, output["weight"]) if "weight" in output else given
        if run.phase != "train":
            return None
        raise ModelError(
            f"No 'loss' among what was returned: {', '.join(map(str, output)) or 'nothing'}."
        )
    if isinstance(output, Tensor) or output is None:
        return output
    loss = getattr(output, "loss", None)
    if loss is None and run.phase == "train":
        raise ModelError(
            f"{type(output).__name__} holds no loss: return the loss, or a mapping with 'loss', or "
            "give loss=."
        )
    return loss


def _refuse_nothing(who: str) -> NoReturn:
    """Refuse None where a step alone may return it; most often a `return` was forgotten."""
    raise ModelError(f"{who} returned None: return the loss. Only a step= may skip an update.")


_NAMES = ("_global_optimizer_pre_hooks", "_global_optimizer_post_hooks")
_GLOBAL_HOOKS = [getattr(torch_optimizer, name, {"unknown": None}) for name in _NAMES]


def zero_optimizer(optimizer: Optimizer) -> None:
    """Forget the gradients of the last update."""
    method = optimizer.zero_grad
    if getattr(method, "__func__", None) is not Optimizer.zero_grad or _is_profiling():
        method()
        return
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            parameter.grad = None


def step_optimizer(optimizer: Optimizer) -> None:
    """Make the update."""
    if _is_profiling() or (own := _own_step(optimizer)) is None:
        optimizer.step()
        return
    # What a scheduler's wrapper around the step would note: that there was one.
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
    if optimizer._optimizer_step_pre_hooks or optimizer._optimizer_step_post_hooks:
        return None
    return cast("Callable[[Optimizer], object] | None", getattr(on_class, "__wrapped__", None))
