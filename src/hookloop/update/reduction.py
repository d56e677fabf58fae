"""The microbatches of one update on many ranks: each computes its part of the global batch.

The loss of a rank counts for its part of the samples, gradients are averaged over the ranks in the
backward pass of the last microbatch, and what is recorded are the numbers of the global batch,
equal on all ranks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

import torch
from torch import Tensor

from hookloop.data.batch import is_scalar
from hookloop.data.mixing.mixture import Labelled
from hookloop.data.ranks.place import Place, Share
from hookloop.errors import ModelError
from hookloop.metrics.weighted import zero_if_uncounted
from hookloop.update.update import LossOf, Update

if TYPE_CHECKING:
    from hookloop.data.mixing.mixture import TrainingStream
    from hookloop.engine.run import Run

_log = logging.getLogger("hookloop")


class Averager(Protocol):
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

    def averaged_loss(
        self, loss: Tensor | None, factor: Tensor | float, numbers: Sequence[Tensor]
    ) -> Tensor | None:
        """Return a loss whose backward does the same, for a backward of the user's own."""

    def agree_on_skip(self, is_skipped: bool, iteration: int) -> None:
        """Reject an update that only some ranks skip, where all are needed."""

    def check_complete(self) -> None:
        """Reject an update in which a parameter got no gradient, where all need one."""

    @property
    def mean_numbers(self) -> Tensor:
        """The mean of the numbers over all ranks, after the last backward."""


class Reduction:
    """Makes an update together with the other ranks.

    Args:
        update: What to make.
        averager: Averages its gradients.
        size: The number of ranks, by which a mean over them divides.

    Attributes:
        cuts: Into how many parts a global batch is cut.
    """

    def __init__(self, update: Update, averager: Averager, size: int) -> None:
        self.update = update
        self.averager = averager
        self.size = size
        self.cuts = size
        self._names: tuple[str, ...] = ()
        self._unit: Tensor | None = None
        self._is_uneven = False  # Whether streams were cut in different proportions.

    def make(self, run: Run, batches: list[object]) -> None:
        """Make the update from this rank's microbatches, unless all ranks skip it."""
        parts = self.group(run, batches)
        update = self.update
        if update.add_gradients(run, batches, parts) and parts.close(run):
            update.finish(run)
        else:
            update.note_no_loss(run)

    def group(self, run: Run, batches: Sequence[object]) -> RankParts:
        """Return this rank's microbatches as one group."""
        return RankParts(self, parts_of(run, batches))

    def compute_averaged(self, compute: Callable[[Run], Tensor | None], run: Run) -> Tensor | None:
        """Compute output and loss for an update of the user's own, whose backward averages.

        The loss counts for this rank's part of the samples, so the user's update needs no change.
        """
        if not torch.is_grad_enabled() or run.phase != "train":
            return compute(run)
        averager, (part,) = self.averager, parts_of(run, [run.batch])
        run.place = part.place
        averager.clear()
        averager.start(synchronizes=True)
        loss = self.counted(run, averager.forward(compute, run))
        group = RankParts(self, [part])
        return averager.averaged_loss(loss, group.factor(run, part), ())

    def counted(self, run: Run, loss: Tensor | None) -> Tensor | None:
        """Return a loss, or 0 if the part of this rank has nothing that counts."""
        if loss is None or self.update.counts is None:
            return loss
        weight = self.update.weight(run)
        return loss if weight is None else zero_if_uncounted(loss, weight)

    def numbers(self, run: Run, loss: Tensor) -> list[Tensor]:
        """Return what is averaged over the ranks: what the loss counts for, the loss, and more."""
        value = loss.detach().float()
        numbers = [self._one(value), value]
        if self.update.returns_loss and isinstance(run.output, Mapping):
            self._names = _numbers_in(run.output, self._names)
            numbers += [_as_tensor(run.output[name], value) for name in self._names]
        return numbers

    def with_means(self, output: object, means: Tensor) -> object:
        """Return an output in which the numbers are those of the global batch."""
        if not (self._names and isinstance(output, Mapping)):
            return output
        return {**output, **{name: means[2 + i] for i, name in enumerate(self._names)}}

    def _one(self, like: Tensor) -> Tensor:
        """Return the number 1, which is made once."""
        if self._unit is None or self._unit.device != like.device:
            self._unit = torch.ones_like(like)
        return self._unit

    def check_even(self, run: Run, share: Share) -> None:
        """Say once that one loss of several streams cannot be weighted by the samples of each."""
        output = run.output if isinstance(run.output, Mapping) else {}
        is_weighted = "weight" in output or isinstance(output.get("loss"), dict)
        if self._is_uneven or is_weighted or share.is_even(self.cuts):
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
            self.cuts,
        )


class Part(NamedTuple):
    """A microbatch of this rank, or a part of one.

    Attributes:
        batch: What is computed.
        share: How much of the global batch it is.
        number: The number of the global batch in its pass.
        stream: The stream that it is from, where several are mixed.
    """

    batch: object
    share: Share
    number: int
    stream: str | None = None

    @property
    def place(self) -> Place:
        """What hooks see of it, as ``run.place``."""
        return Place(self.number, *self.share)


class RankParts:
    """The microbatches that one rank has in one update.

    Args:
        reduction: What they are made for.
        parts: This rank's microbatches.
        shares: Those of the batches as they were read, if these are split into parts.
        averages: Whether the last backward averages the gradients over the ranks.
    """

    def __init__(
        self,
        reduction: Reduction,
        parts: Sequence[Part],
        shares: Sequence[Share] | None = None,
        *,
        averages: bool = True,
    ) -> None:
        self._reduction = reduction
        self._update, self._averager = reduction.update, reduction.averager
        self._parts = parts
        self._averages = averages
        self._has_own_backward = type(self._update).backward is not Update.backward
        self._expected = self._expect([part.share for part in parts] if shares is None else shares)
        self._is_weighted = self._expected == 1.0 and not self._update.sums
        self._is_empty = True
        self._current = parts[0]
        self._factor: Tensor | float = 0.0
        self._numbers: Sequence[Tensor] = ()

    def __iter__(self) -> Iterator[object]:
        """Yield them, each with its place."""
        averager = self._averager
        averager.clear()
        for left, part in enumerate(self._parts, 1 - len(self._parts)):
            self._current = part
            averager.start(synchronizes=self._averages and left == 0)
            yield part.batch

    def compute(self, run: Run) -> Tensor | None:
        """Compute output and loss so that the backward averages."""
        part = self._current
        run.place = part.place
        if part.stream is not None:
            run.stream = part.stream
        return self._reduction.counted(run, self._averager.forward(self._update.computation, run))

    def weigh(self, run: Run, loss: Tensor | None) -> Tensor | None:
        """Find what the loss of the current one counts for, and what travels with it."""
        update, part, reduction = self._update, self._current, self._reduction
        if update.may_skip:
            self._averager.agree_on_skip(loss is None, run.progress.iter)
        self._numbers = ()
        if loss is not None:
            self._is_empty = False
            update.begin(run, loss)
            if part.share.streams is not None and run.world.is_main:
                reduction.check_even(run, part.share)
            if part.share.weight:
                self._numbers = reduction.numbers(run, loss)
        self._factor = self.factor(run, part)
        return loss

    def factor(self, run: Run, part: Part) -> Tensor | float:
        """Return what the loss of this rank is multiplied with, before it is averaged."""
        own = part.share.weight
        if run.loss is None or own == 0:
            return 0.0
        if self._update.sums:  # Sums add up, where the average divides by the number of ranks.
            return float(self._reduction.size)
        weight = self._update.weight(run)
        if weight is None:
            return own / self._expected
        self._is_weighted = True
        return weight / self._expected

    def backward(self, loss: Tensor | None) -> None:
        """Add the gradients of a microbatch, and let the numbers of this rank travel with them."""
        update, averager = self._update, self._averager
        if self._has_own_backward:
            averaged = averager.averaged_loss(loss, self._factor, self._numbers)
            if averaged is not None:
                update.backward(averaged)
            return
        if update.scaler is not None and loss is not None:
            loss = update.scaler.scale(loss)
        averager.backward(loss, self._factor, self._numbers)

    def close(self, run: Run) -> bool:
        """Make gradients and numbers those of the global batch, and record them."""
        update, averager = self._update, self._averager
        averager.check_complete()
        means = averager.mean_numbers
        # Only a rank that has no loss at all must look whether the others have one: to read a
        # number waits for the device.
        if self._is_empty and not float(means[0]):
            return False
        if self._is_empty and update.may_skip and any(one.share.weight for one in self._parts):
            update.note_no_loss(run, is_of_rank=True)
        if (self._is_weighted or update.returns_loss) and not update.sums:
            # The weights may add up to something else than was expected. Every rank has the same
            # sum of them, so all divide by the same number.
            ratio = torch.where(means[0] == 0, 1.0, means[0])
            # A part of a sharded gradient is divided by a number, as no tensor is cut like it.
            divisor = float(ratio) if averager.has_parts else ratio
            for parameter in set(update.parameters()):
                if parameter.grad is not None:
                    parameter.grad.div_(divisor)
            means = means / ratio
        run.loss = means[1]
        if self._is_empty:
            update.begin(run, None)
        last, run.output = run.output, self._reduction.with_means(run.output, means)
        update.record(run, run.loss)
        run.output = last
        return True

    def _expect(self, shares: Sequence[Share]) -> float:
        """Return what the weights of a rank's microbatches add up to, on average over the ranks."""
        totals = [share.total for share in shares]
        if self._update.sums or None in totals:
            return 1.0
        return float(sum(total for total in totals if total is not None) / self._reduction.size)


def parts_of(run: Run, batches: Sequence[object]) -> list[Part]:
    """Return the microbatches that this rank has read in an iteration, with their shares."""
    shares, last = shares_of(run), cast("TrainingStream", run.train_data).at.batches
    step = max(1, len(run.world.leaves))  # Parts of each global batch.
    begun = last - len(batches) // step
    numbers = [begun + 1 + place // step for place in range(len(batches))]
    labels = batches.labels if isinstance(batches, Labelled) else [None] * len(batches)
    return [Part(*one) for one in zip(batches, shares, numbers, labels, strict=True)]


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
