"""One update: forward, loss, backward, step. The hot path, in one file.

An update steps one group of optimizers from one loss. Ordinary training makes one per iteration; a
GAN makes one per optimizer, one after the other.

Everything here runs once per microbatch, next to a forward and backward pass that on a small model
take a few hundred microseconds. What looks odd has a reason:

- A point at which no hook acts is skipped by looking at its tuple of calls, ``if calls := ...``:
  calling `fire` for nothing would cost three times as much, seven times over.
- The plan is looked up at each firing and not once per epoch, because a hook that fails is taken
  out of it, and hooks may be added to it, in the middle of an epoch.
- Nothing is read from the device: the loss is recorded as the tensor it is.

``docs/speed.md`` has the figures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor
from torch.optim import Optimizer

from hookloop.core.plan import fire
from hookloop.data.batch import is_pair, pair_of
from hookloop.data.description import note_batch, note_module
from hookloop.data.microbatches import (
    Microbatches,
    check_loss,
    is_scalar,
    loss_or_zero,
    weight_in,
)
from hookloop.data.share import add_losses
from hookloop.errors import ModelError
from hookloop.metrics.weighted import Weight
from hookloop.optimizer_calls import step_optimizer, zero_optimizer

if TYPE_CHECKING:
    from hookloop.core.run import Run
    from hookloop.metrics.series import Series

Step = Callable[["Run", Any], Any]
Forward = Callable[["Run"], object]
LossOf = Callable[["Run"], Tensor | None]


class Update:
    """One update: how its loss is computed and which optimizers step.

    A subclass may make the update its own way, and is given to the Trainer as ``step=``.

    Args:
        name: Prefix of its loss in the metrics; empty when it is the only update.
        forward: Computes ``run.output`` from ``run.batch``.
        loss_of: Computes ``run.loss`` from ``run.output``; if that is None, there is no update.
            Without such a function only outputs are computed, as in a prediction.
        optimizers: Those that step.
        clip_norm: Limit of the gradients' norm, if any.
        scaler: Scales the loss, with half precision.
    """

    def __init__(
        self,
        name: str,
        forward: Forward,
        loss_of: LossOf | None,
        optimizers: Sequence[Optimizer],
        *,
        clip_norm: float | None = None,
        scaler: torch.amp.GradScaler | None = None,
    ) -> None:
        self.loss_name = f"{name}_loss" if name else "loss"
        self.forward = forward
        self.loss_of = loss_of
        self.compute: Callable[[Run], Tensor | None] = self._compute
        self.returns_loss = loss_of is loss_in_output
        self.sums = False  # Whether the loss is a sum over a batch; otherwise it is a mean.
        self.may_skip = False  # Whether there may be no loss for a batch, as a step may decide.
        self.may_repeat = False  # Whether it may be made again: it then records only at its end.
        self.optimizers = tuple(optimizers)
        self.clip_norm = clip_norm
        self.scaler = scaler
        self._losses: Series | None = None

    def make(self, run: Run, batches: list[object]) -> None:  # noqa: C901, PLR0912 - hot, so whole
        """Make the update from its microbatches, unless the step returns no loss for any."""
        self.zero_grad()
        is_alone = len(batches) == 1 and not self.may_repeat
        group = None if is_alone else Microbatches(batches, sums=self.sums)
        for batch in batches:
            run.batch = batch
            loss = self.compute(run)
            if loss is None:
                continue
            if group is None:
                self.record(run, loss)
            else:
                self.begin(run, loss)
                loss = group.share(loss, self.weight(run), run.batch, run.output)
            try:
                self.backward(loss)
            except Exception as error:
                note_error(error, run)
                raise
            if calls := run.plan.after_backward:
                fire(calls, run)
        if loss is None if group is None else group.is_empty:
            return
        if group is not None:
            self.complete(run, group)
        if self.scaler is not None:
            self.unscale()
        if calls := run.plan.before_update:
            fire(calls, run)
        self.apply(run)
        if calls := run.plan.after_update:
            fire(calls, run)
        run.will_skip = False

    def _compute(self, run: Run) -> Tensor | None:
        """Compute output and loss of the batch, in every phase; hooks may replace them."""
        plan = run.plan
        if calls := plan.before_forward:
            fire(calls, run)
        try:
            run.output = self.forward(run)
        except Exception as error:
            note_error(error, run)
            raise
        if calls := plan.after_forward:
            fire(calls, run)
        if (loss_of := self.loss_of) is None:
            return None
        try:
            run.loss = loss_of(run)
        except Exception as error:
            note_error(error, run, run.output)
            raise
        if calls := plan.after_loss:
            fire(calls, run)
        return run.loss

    def compute_within(self, context: AbstractContextManager[None] | None) -> None:
        """Compute output and loss within a context from now on: that of lower precision."""
        if context is None:  # Full precision is spared the context, which costs a third of a us.
            return

        def compute(run: Run) -> Tensor | None:
            with context:
                return self._compute(run)

        self.compute = compute

    @property
    def keeps_gradients(self) -> bool:
        """Whether it makes the update its own way, so that gradients may wait for it."""
        return type(self).zero_grad is not Update.zero_grad

    def zero_grad(self) -> None:
        """Drop the gradients of the last update."""
        for optimizer in self.optimizers:
            zero_optimizer(optimizer)

    def record(self, run: Run, loss: Tensor) -> None:
        """Put the loss, and what else a step returned, into the metric store; nothing is read."""
        losses = self._losses or self.begin(run, loss)
        losses.add(loss.detach())  # Without its graph, which would keep all activations alive.
        if self.returns_loss:
            for name, value in self.numbers(run).items():
                run.metrics.put(f"train/{name}", value)

    def begin(self, run: Run, loss: Tensor) -> Series:
        """Check the first loss, and return the series of all losses."""
        if self._losses is None:
            check_loss(loss, self.loss_name)
            self._losses = run.metrics.series(f"train/{self.loss_name}")
        return self._losses

    def numbers(self, run: Run) -> dict[str, Tensor | float]:
        """Return the numbers beside the loss in what a step, or the model, returned."""
        if not self.returns_loss or not isinstance(output := run.output, Mapping):
            return {}
        besides = (name for name in output if name not in ("loss", "weight"))
        return {name: output[name] for name in besides if is_scalar(output[name])}

    def weight(self, run: Run) -> Weight | None:
        """Return what the step says the batch counts for, or None if it does not say."""
        return weight_in(run.output) if self.returns_loss else None

    def backward(self, loss: Tensor) -> None:
        """Add the gradients of one microbatch."""
        if self.scaler is not None:
            loss = self.scaler.scale(loss)
        loss.backward()  # type: ignore[no-untyped-call]

    def complete(self, run: Run, group: Microbatches) -> None:
        """Make gradients, loss and other numbers those of the whole batch, and record them."""
        group.correct(self.parameters())
        # The numbers of the whole batch are recorded, but hooks go on to see the last microbatch.
        last, run.output = run.output, group.output(run.output)
        run.loss = group.loss()
        self.record(run, run.loss)
        run.output = last

    def unscale(self) -> None:
        """Bring scaled gradients back to their true size, before hooks and clipping see them."""
        if self.scaler is not None:
            for optimizer in self.optimizers:
                self.scaler.unscale_(optimizer)

    def apply(self, run: Run) -> None:
        """Clip the gradients, and step the optimizers."""
        if self.clip_norm is not None:
            norm = torch.nn.utils.clip_grad_norm_(self.parameters(), self.clip_norm)
            if hasattr(norm, "to_local"):  # Of a sharded model; each rank has the whole norm.
                norm = norm.to_local()
            run.metrics.series("train/grad_norm").add(norm)
        if self.scaler is None:
            for optimizer in self.optimizers:
                step_optimizer(optimizer)
            return
        for optimizer in self.optimizers:
            self.scaler.step(optimizer)  # Skips the step if a gradient is not finite.
        self.scaler.update()  # Once, after the last of them, as torch asks for.

    def parameters(self) -> list[Tensor]:
        """Return what its optimizers step."""
        return [
            parameter
            for optimizer in self.optimizers
            for group in optimizer.param_groups
            for parameter in group["params"]
        ]


def note_error(error: Exception, run: Run, *output: object) -> None:
    """Add to an error of the model or the loss where it was raised, and with which batch."""
    note_batch(error, run.phase, run.progress.iter, run.batch, *output)
    note_module(error, run.model)


# --- what is in an output -------------------------------------------------------------------------


def loss_in_output(run: Run) -> Tensor | None:
    """Find the loss in what a step or the model returned."""
    output = run.output
    if isinstance(output, Mapping):
        if "loss" in output:
            if isinstance(output["loss"], dict):  # Of each stream.
                return add_losses(output, run.place)
            loss = cast("Tensor", output["loss"])
            return loss_or_zero(loss, output["weight"]) if "weight" in output else loss
        if run.phase != "train":  # An evaluation may do without a loss.
            return None
        raise ModelError(
            f"No 'loss' among what was returned: {', '.join(map(str, output)) or 'nothing'}."
        )
    if isinstance(output, Tensor) or output is None:
        return output
    found: Tensor | None = getattr(output, "loss", None)
    if found is None and run.phase == "train":
        raise ModelError(
            f"{type(output).__name__} holds no loss: return the loss, or a mapping with 'loss', or "
            "give loss=."
        )
    return found


def targets_of(run: Run) -> object:
    """Return what metrics compare the output with: targets, or whatever batch a step gets."""
    is_known = run.loss_function is not None or is_pair(run.batch)
    return pair[1] if is_known and (pair := pair_of(run.batch)) else run.batch


def output_of(output: object) -> object:
    """Return what metrics look at: the ``output`` entry of a step's mapping, or all of it."""
    return output["output"] if isinstance(output, Mapping) and "output" in output else output
