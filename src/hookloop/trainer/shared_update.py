"""One update on many ranks: each computes its part of the global batch.

It is what `Update.make` does, with three differences: the loss of a rank counts for its part of the
samples, gradients are averaged over the ranks in the backward pass of the last microbatch, and what
is recorded are the numbers of the global batch, equal on all ranks.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

import torch
from torch import Tensor

from hookloop.core.plan import fire
from hookloop.core.update import LossOf, Update, note_error
from hookloop.data.microbatches import is_scalar
from hookloop.data.share import Place
from hookloop.errors import ModelError

if TYPE_CHECKING:
    from hookloop.core.run import Run
    from hookloop.data.share import Share
    from hookloop.data.source import Source

_log = logging.getLogger("hookloop")


class Team(Protocol):
    """How the ranks of a run average the gradients and numbers of one update.

    Attributes:
        has_parts: Whether a rank has only a part of each gradient.
    """

    has_parts: bool

    def clear(self) -> None:
        """Drop the numbers of the last update."""

    def start(self, *, synchronizes: bool) -> None:
        """Begin a microbatch; the backward of the last one averages the gradients."""

    def forward(self, compute: LossOf, run: Run) -> Tensor | None:
        """Compute a loss whose backward averages the gradients."""

    def backward(
        self, loss: Tensor | None, factor: Tensor | float, numbers: Sequence[Tensor]
    ) -> None:
        """Add the gradients of a loss, and numbers of this rank, both times a factor."""

    def join(
        self, loss: Tensor | None, factor: Tensor | float, numbers: Sequence[Tensor]
    ) -> Tensor | None:
        """Return a loss whose backward does the same, for a backward of the user's own."""

    def agree_on_skip(self, is_skipped: bool, iteration: int) -> None:
        """Reject an update that only some ranks skip, where all are needed."""

    def check_complete(self) -> None:
        """Reject an update in which a parameter got no gradient, where all need one."""

    @property
    def carried(self) -> Tensor:
        """The mean of the numbers over all ranks, after the last backward."""


class SharedUpdate:
    """Makes an update together with the other ranks.

    Args:
        update: What to make.
        team: Averages its gradients.
        size: The number of ranks.
    """

    def __init__(self, update: Update, team: Team, size: int) -> None:
        self._update = update
        self._team = team
        self._size = size
        self._compute = update.compute
        self._has_own_backward = type(update).backward is not Update.backward
        self._names: tuple[str, ...] = ()
        self._unit: Tensor | None = None
        self._is_weighted = False
        self._is_uneven = False  # Whether streams were cut in different proportions.

    def make(self, run: Run, batches: list[object]) -> None:
        """Make the update from this rank's microbatches, unless all ranks skip it."""
        shares, last = shares_of(run), cast("Source", run.train_data).position
        numbers = range(last + 1 - len(batches), last + 1)
        is_empty = self.add_gradients(run, list(zip(batches, shares, numbers, strict=True)), shares)
        self.complete(run, is_empty=is_empty)

    def add_gradients(
        self,
        run: Run,
        parts: Sequence[tuple[object, Share, int]],
        shares: Sequence[Share],
        *,
        averages: bool = True,
    ) -> bool:
        """Add the gradients of microbatches; return whether this rank has no loss for any.

        Args:
            run: The run.
            parts: The microbatches, each with its share and the number of its global batch.
            shares: Those of the batches as they were read.
            averages: Whether the last backward averages the gradients over the ranks.
        """
        update, team = self._update, self._team
        update.zero_grad()
        team.clear()
        expected = self._expected(shares)
        self._is_weighted = expected == 1.0 and not update.sums
        is_empty = True
        for left, (batch, share, number) in enumerate(parts, 1 - len(parts)):
            run.batch = batch
            run.place = Place(number, *share)
            team.start(synchronizes=averages and left == 0)
            loss = team.forward(self._compute, run)
            if update.may_skip:
                team.agree_on_skip(loss is None, run.progress.iter)
            if loss is not None:
                is_empty = False
                update.begin(run, loss)
                if share.streams is not None and run.world.is_main:
                    self._check_even(run, share)
            numbers = self._numbers(run, loss) if loss is not None and share.weight else ()
            try:
                self._backward(loss, self._factor(run, share, expected), numbers)
            except Exception as error:
                note_error(error, run)
                raise
            if loss is not None and (calls := run.plan.after_backward):
                fire(calls, run)
        return is_empty

    def complete(self, run: Run, *, is_empty: bool) -> None:
        """Make the update from gradients that are averaged, unless all ranks skip it."""
        team = self._team
        team.check_complete()
        carried = team.carried
        # Only a rank that has no loss at all must look whether the others have one: to read a
        # number waits for the device.
        if is_empty and not float(carried[0]):
            return
        self._complete(run, carried)
        self._apply(run)

    def compute(self, run: Run) -> Tensor | None:
        """Compute output and loss for an update of the user's own, whose backward averages.

        The loss counts for this rank's part of the samples, so the user's update needs no change.
        """
        if not torch.is_grad_enabled() or run.phase != "train":
            return self._compute(run)
        team, share = self._team, shares_of(run)[0]
        run.place = Place(cast("Source", run.train_data).position, *share)
        team.clear()
        team.start(synchronizes=True)
        loss = team.forward(self._compute, run)
        return team.join(loss, self._factor(run, share, self._expected([share])), ())

    def _backward(
        self, loss: Tensor | None, factor: Tensor | float, numbers: Sequence[Tensor]
    ) -> None:
        """Add the gradients of a microbatch, and let the numbers of this rank travel with them."""
        update, team = self._update, self._team
        if self._has_own_backward:
            joined = team.join(loss, factor, numbers)
            if joined is not None:
                update.backward(joined)
            return
        if update.scaler is not None and loss is not None:
            loss = update.scaler.scale(loss)
        team.backward(loss, factor, numbers)

    def _numbers(self, run: Run, loss: Tensor) -> list[Tensor]:
        """Return what is averaged over the ranks: what the loss counts for, the loss, and more."""
        value = loss.detach().float()
        numbers = [self._one(value), value]
        if self._update.returns_loss and isinstance(run.output, Mapping):
            self._names = _numbers_in(run.output, self._names)
            numbers += [_as_tensor(run.output[name], value) for name in self._names]
        return numbers

    def _one(self, like: Tensor) -> Tensor:
        """Return the number 1, which is made once."""
        if self._unit is None or self._unit.device != like.device:
            self._unit = torch.ones_like(like)
        return self._unit

    def _expected(self, shares: Sequence[Share]) -> float:
        """Return what the weights of a rank's microbatches add up to, on average over the ranks."""
        totals = [share.total for share in shares]
        if self._update.sums or None in totals:
            return 1.0
        return float(sum(total for total in totals if total is not None) / self._size)

    def _factor(self, run: Run, share: Share, expected: float) -> Tensor | float:
        """Return what the loss of this rank is multiplied with, before it is averaged."""
        own = share.weight
        if run.loss is None or own == 0:
            return 0.0
        if self._update.sums:  # Sums add up, where the average divides by the number of ranks.
            return float(self._size)
        weight = self._update.weight(run)
        if weight is None:
            return own / expected
        self._is_weighted = True
        return weight / expected

    def _check_even(self, run: Run, share: Share) -> None:
        """Say once that one loss of several streams cannot be weighted by the samples of each."""
        output = run.output if isinstance(run.output, Mapping) else {}
        is_weighted = "weight" in output or isinstance(output.get("loss"), dict)
        if self._is_uneven or is_weighted or share.is_even(self._size):
            return
        self._is_uneven = True
        streams = share.streams or {}
        cuts = " and ".join(f"{one.own} of {one.total} of '{n}'" for n, one in streams.items())
        _log.warning(
            "Iteration %d: the streams are cut in different proportions (the first rank has %s), "
            "and one loss cannot be weighted by all of them: the update is close to that of one "
            "process, and not the same. Return the loss of each stream, {'loss': {%s}}, or use "
            "drop_last=True and batch sizes that %d ranks divide.",
            run.progress.iter + 1,
            cuts,
            ", ".join(f"'{name}': ..." for name in streams),
            self._size,
        )

    def _complete(self, run: Run, carried: Tensor) -> None:
        """Make gradients and numbers those of the global batch, and record them."""
        update = self._update
        if self._may_differ():
            # Every rank has the same sum of weights, so all divide by the same number.
            ratio = torch.where(carried[0] == 0, 1.0, carried[0])
            # A part of a sharded gradient is divided by a number, as no tensor is cut like it.
            divisor = float(ratio) if self._team.has_parts else ratio
            for parameter in set(update.parameters()):
                if parameter.grad is not None:
                    parameter.grad.div_(divisor)
            carried = carried / ratio
        run.loss = carried[1]
        last = run.output
        if self._names and isinstance(last, Mapping):
            means = {name: carried[2 + i] for i, name in enumerate(self._names)}
            run.output = {**last, **means}
        update.record(run, run.loss)
        run.output = last

    def _apply(self, run: Run) -> None:
        """Step the optimizers between the points of an update, as in one process."""
        update = self._update
        if update.scaler is not None:
            update.unscale()
        if calls := run.plan.before_update:
            fire(calls, run)
        update.apply(run)
        if calls := run.plan.after_update:
            fire(calls, run)
        run.will_skip = False

    def _may_differ(self) -> bool:
        """Return whether the weights may add up to something else than was expected."""
        return (self._is_weighted or self._update.returns_loss) and not self._update.sums


def shares_of(run: Run) -> list[Share]:
    """Return how much of the batches of an iteration this rank has read."""
    source = run.train_data
    shares = source.shares() if source is not None else None
    if shares is None:
        raise ModelError("The training data is not shared among the ranks.")
    return shares


def _numbers_in(output: Mapping[str, Any], known: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the numbers that a step returned besides the loss, in a fixed order."""
    names = sorted(
        name
        for name, value in output.items()
        if name not in ("loss", "weight") and is_scalar(value)
    )
    return known if list(known) == names else tuple(names[:SLOTS_FOR_NUMBERS])


def _as_tensor(value: Tensor | float, like: Tensor) -> Tensor:
    return torch.as_tensor(value, dtype=like.dtype, device=like.device).detach()


SLOTS_FOR_NUMBERS = 14
"""How many numbers of a step are averaged over the ranks, besides its loss."""
