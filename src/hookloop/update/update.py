"""One update: forward, loss, backward, step. The hot path, in one file.

An update steps one group of optimizers from one loss. Ordinary training makes one per iteration; a
GAN makes one per optimizer, one after the other. All mount points within an update fire here.

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

import copy
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, Self

import torch
from torch import Tensor
from torch.optim import Optimizer

from hookloop.data.batch import is_scalar, pair_of
from hookloop.engine.outputs import note_error
from hookloop.engine.plan import fire
from hookloop.metrics.weighted import Weight
from hookloop.update.application import step_optimizer, zero_optimizer
from hookloop.update.microbatches import Microbatches, check_loss, weight_in
from hookloop.update.missing_losses import MissingLosses
from hookloop.update.objective import loss_in_output

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hookloop.engine.run import Run
    from hookloop.metrics.series import Series

Step = Callable[["Run", Any], Any]
Forward = Callable[["Run"], object]
LossOf = Callable[["Run"], Tensor | None]
Counts = Callable[["Run", object], Weight | None]
"""Returns what a batch counts for, by its targets."""
Check = Callable[["Update", "Run", list[object], "Group | None"], bool]
"""Adds the gradients of an update, as `Update.add_gradients` does."""
Make = Callable[["Run", list[object]], None]
"""Makes an update from its microbatches."""


class Group(Protocol):
    """The microbatches of one update, which are weighted into one gradient."""

    def __iter__(self) -> Iterator[object]:
        """Yield them, each with ``run.place`` set where it has one."""

    def compute(self, run: Run) -> Tensor | None:
        """Compute output and loss of the current one."""

    def weigh(self, run: Run, loss: Tensor | None) -> Tensor | None:
        """Return what the loss of the current one adds to that of the whole."""

    def backward(self, loss: Tensor | None) -> None:
        """Add the gradients of a weighted loss; None if the current one has no loss."""

    def close(self, run: Run) -> bool:
        """Make gradients and numbers those of the whole, and record them; False: no update."""


class Update:
    """One update: how its loss is computed and which optimizers step.

    A subclass may replace `zero_grad`, `compute`, `backward`, `unscale` and `apply`, or `make` as
    a whole, and is given to the Trainer as ``step=``, or brought by a hook (`Hook.change_update`).

    Args:
        name: Prefix of its loss in the metrics; empty when it is the only update.
        forward: Computes ``run.output`` from ``run.batch``.
        loss_of: Computes ``run.loss`` from ``run.output``; if that is None, there is no update.
            Without such a function only outputs are computed, as in a prediction.
        optimizers: Those that step.
        clip_norm: Limit of the gradients' norm, if any.
        scaler: Scales the loss, with half precision.
        sums: Whether the loss is a sum over a batch; otherwise it is a mean.
        counts: What the mean of ``loss=`` is taken over; None for samples.
        may_skip: Whether there may be no loss for a batch, as a step may decide.
        missing: Notices that there never is one; shared by the updates of an iteration.

    Attributes:
        averages_itself: Whether it averages its gradients over the ranks on its own.
        computation: What computes output and loss in every phase: `compute`, in the precision of
            the run.
    """

    averages_itself = False
    computation: LossOf
    _inner: LossOf
    _zero_grad: Callable[[], None]
    _apply: Callable[[], None] | None
    _check: Check | None = None

    def __init__(  # noqa: PLR0913 - what an update is made of
        self,
        name: str,
        forward: Forward,
        loss_of: LossOf | None,
        optimizers: Sequence[Optimizer],
        *,
        clip_norm: float | None = None,
        scaler: torch.amp.GradScaler | None = None,
        sums: bool = False,
        counts: Counts | None = None,
        may_skip: bool = True,
        missing: MissingLosses | None = None,
    ) -> None:
        self._name = name
        self.loss_name = f"{name}_loss" if name else "loss"
        self.forward = forward
        self.loss_of = loss_of
        self.returns_loss = loss_of is loss_in_output
        self.sums = sums
        self.counts = counts
        self.may_skip = may_skip
        self._missing = missing or MissingLosses([name])
        self.optimizers = tuple(optimizers)
        self.clip_norm = clip_norm
        self.scaler = scaler
        self._losses: Series | None = None
        self._context: AbstractContextManager[None] | None = None
        self._bind()

    @classmethod
    def like(cls, update: Update) -> Self:
        """Return an update of this class that computes output and loss as another one does."""
        made = cls.__new__(cls)
        vars(made).update(vars(update))
        made._bind()
        return made

    # --- what is chosen before a training ---------------------------------------------------------

    def compute_within(self, context: AbstractContextManager[None] | None) -> None:
        """Compute output and loss within a context from now on: that of lower precision."""
        self._context = context
        self._bind()

    def average_with(
        self, compute: Callable[[Callable[[Run], Tensor | None], Run], Tensor | None]
    ) -> None:
        """Let ``compute`` average the gradients of what this update computes by itself.

        It is for an update that replaces `make`; any other is averaged by its groups.
        """
        self._inner = partial(compute, self._inner)

    def apart(self, scaler: torch.amp.GradScaler | None = None) -> Self:
        """Return a copy that leaves no trace in this one: for a search beside the training."""
        copied = copy.copy(self)
        copied._losses, copied.scaler = None, scaler or self.scaler
        copied._missing = MissingLosses([self._name])
        copied._bind()
        return copied

    def computing_by(self, around: Callable[[Callable[[Run], Any]], Callable[[Run], Any]]) -> Self:
        """Return a copy in which a function wraps what finds the loss: ``loss=``, or a step."""
        copied = copy.copy(self)
        if self.returns_loss:
            copied.forward = around(self.forward)
        elif self.loss_of is not None:
            copied.loss_of = around(self.loss_of)
        copied._bind()
        return copied

    def checking_gradients(self, done: Callable[[Run], None]) -> Self:
        """Return a copy that notes updates without a gradient, and calls ``done`` after one."""
        copied = copy.copy(self)

        def has_gradients() -> bool:
            trained = [one for one in copied.parameters() if one.requires_grad]
            return not trained or any(one.grad is not None for one in trained)

        def finish(run: Run) -> None:
            had_some = has_gradients()  # A hook may drop them, or put back what it had taken.
            type(copied).finish(copied, run)
            if had_some or has_gradients():
                done(run)
            else:
                copied._missing.note(copied._name, run, has_loss=True)

        copied.finish = finish  # type: ignore[method-assign]
        copied._bind()
        return copied

    def checked_by(self, check: Check | None) -> Self:
        """Return a copy whose gradients a function adds, given the copy; None: it does so itself.

        The function may compute them more than once; at last it calls `gradients_of` of the copy.
        """
        copied = copy.copy(self)
        copied._check = check
        vars(copied).pop("add_gradients", None)
        copied._bind()
        return copied

    def gradients_of(self, run: Run, batches: list[object], group: Group | None) -> bool:
        """Add the gradients as `add_gradients` does, without the function that checks them."""
        return type(self).add_gradients(self, run, batches, group)

    def _bind(self) -> None:
        """Choose what the hot path calls, so that it does not choose in each iteration."""
        kind, context = type(self), self._context
        if self._check is not None:
            self.add_gradients = partial(self._check, self)  # type: ignore[method-assign]
        self._inner = _within(context, self._compute)
        self.computation = self._inner
        if kind.compute is not Update.compute:
            # A context of its own, because the method may call the one that it replaces.
            self.computation = _within(copy.copy(context), self.compute)
        # One optimizer and nothing else to do: without a method between.
        is_plain = len(self.optimizers) == 1
        self._zero_grad = self.zero_grad
        if is_plain and kind.zero_grad is Update.zero_grad:
            self._zero_grad = partial(zero_optimizer, self.optimizers[0])
        self._apply = None
        if is_plain and kind.apply is Update.apply and not (self.clip_norm or self.scaler):
            self._apply = partial(step_optimizer, self.optimizers[0])

    # --- one update -------------------------------------------------------------------------------

    def make(self, run: Run, batches: list[object]) -> None:
        """Make the update from its microbatches, unless the step returns no loss for any."""
        # A single batch is not weighted: a weighted mean over one batch rounds.
        group = None if len(batches) == 1 else Microbatches(self, batches)
        if self.add_gradients(run, batches, group) and (group is None or group.close(run)):
            self.finish(run)
        else:
            self.note_no_loss(run)

    def add_gradients(self, run: Run, batches: list[object], group: Group | None) -> bool:
        """Add the gradients of all microbatches; return False if a single one has no loss."""
        self._zero_grad()
        if group is None:
            compute, backward = self.computation, self.backward
        else:
            compute, backward = group.compute, group.backward
        for batch in batches if group is None else group:
            run.batch = batch
            loss = compute(run)
            if group is not None:
                weighted = group.weigh(run, loss)
            elif loss is not None:
                self.record(run, loss)
                weighted = loss
            else:
                return False
            try:
                backward(weighted)  # type: ignore[arg-type]
            except Exception as error:
                note_error(error, run)
                raise
            if loss is not None and (calls := run._plan.after_backward):
                fire(calls, run)
        return True

    def finish(self, run: Run) -> None:
        """Step the optimizers with the gradients of the whole batch."""
        if self.scaler is not None:
            self.unscale()
        if calls := run._plan.before_update:
            fire(calls, run)
        if self._apply is None:
            self.apply(run)
        else:
            self._apply()
        if calls := run._plan.after_update:
            fire(calls, run)
        run.will_skip = False

    def note_no_loss(self, run: Run, *, is_of_rank: bool = False) -> None:
        """Note that an iteration had no loss, here or at all; reject a training without any."""
        self._missing.note(self._name, run, is_of_rank=is_of_rank)

    def check_end(self, run: Run) -> None:
        """Reject a training that has ended without any update."""
        self._missing.check_end(run)

    # --- its stages -------------------------------------------------------------------------------

    @property
    def keeps_gradients(self) -> bool:
        """Whether it makes the update its own way, so that gradients may wait for it."""
        return type(self).zero_grad is not Update.zero_grad

    def zero_grad(self) -> None:
        """Drop the gradients of the last update."""
        for optimizer in self.optimizers:
            zero_optimizer(optimizer)

    def compute(self, run: Run) -> Tensor | None:
        """Compute output and loss of the batch, in every phase; hooks may replace them."""
        return self._inner(run)

    def _compute(self, run: Run) -> Tensor | None:
        plan = run._plan
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

    def record(self, run: Run, loss: Tensor) -> None:
        """Put the loss, and what else a step returned, into the metric store; nothing is read."""
        losses = self._losses or self.begin(run, loss)
        losses.add(loss.detach())  # Without its graph, which would keep all activations alive.
        if self.returns_loss:
            for name, value in self.numbers(run).items():
                run.metrics.put(f"train/{name}", value)

    def begin(self, run: Run, loss: Tensor | None) -> Series:
        """Check the first loss, unless only other ranks have one; return the series of all."""
        if self._losses is None:
            if loss is not None:
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
        """Return what the batch counts for, by its loss or its step; None for its samples."""
        if self.counts is not None:
            pair = pair_of(run.batch)
            return None if pair is None else self.counts(run, pair[1])
        return weight_in(run.output) if self.returns_loss else None

    def backward(self, loss: Tensor) -> None:
        """Add the gradients of one microbatch."""
        if self.scaler is not None:
            loss = self.scaler.scale(loss)
        loss.backward()  # type: ignore[no-untyped-call]

    def unscale(self) -> None:
        """Bring scaled gradients back to their true size, before hooks and clipping see them."""
        if self.scaler is not None:
            for optimizer in self.optimizers:
                self.scaler.unscale_(optimizer)

    def apply(self, run: Run) -> None:
        """Clip the gradients, and step the optimizers."""
        if self.clip_norm is not None:
            shards = run._internals.shards
            clip = torch.nn.utils.clip_grad_norm_ if shards is None else shards.clip
            norm = clip(self.parameters(), self.clip_norm)
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


def _within(
    context: AbstractContextManager[None] | None, compute: Callable[[Run], Tensor | None]
) -> Callable[[Run], Tensor | None]:
    if context is None:  # Full precision is spared the context, which costs a third of a us.
        return compute

    def computing(run: Run) -> Tensor | None:
        with context:
            return compute(run)

    return computing
