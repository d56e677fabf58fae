"""What hooks share that mix the samples of a batch with one another, and their targets alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass, replace
from typing import TYPE_CHECKING, cast
from zlib import crc32

import numpy as np
import torch
from torch import Tensor

from hookloop.core.hook import Hook, Priority, moment_of
from hookloop.data.batch import size_of
from hookloop.data.description import describe
from hookloop.errors import HookError

if TYPE_CHECKING:
    from hookloop.core.run import Run

Place = int | str


class Mixing(Hook):
    """Mixes each sample of a training batch with another one of the same batch.

    How much of each goes into the mix is drawn from a Beta distribution, once per microbatch. The
    random numbers are the hook's own and part of its state, so a resume repeats them.

    Args:
        classes: How many classes there are; None where the targets are no classes.
        alpha: Both parameters of the Beta distribution.
        probability: Share of the batches that are mixed.
        until: Moment of the run from which on no batch is.
        inputs: Where the inputs are in a batch: a place, a key or an attribute.
        targets: Where the targets are.
    """

    priority = Priority.LOW  # After hooks that choose or resize samples.
    takes_part_in_training = True

    def __init__(
        self,
        classes: int | None,
        alpha: float,
        probability: float,
        until: int | str | None,
        inputs: Place,
        targets: Place,
    ) -> None:
        kind = type(self).__name__
        if classes is not None and classes < 2:
            raise HookError(f"{kind}: classes={classes}: give the number of classes, 2 or more.")
        if not alpha > 0:
            raise HookError(f"{kind}: alpha={alpha}: it must be above 0.")
        if not 0 < probability <= 1:
            raise HookError(
                f"{kind}: probability={probability}: it must be above 0, and 1 at most."
            )
        self.classes = classes
        self.alpha = alpha
        self.probability = probability
        self.until = None if until is None else moment_of(self, "until", until)
        self.inputs = inputs
        self.targets = targets
        self.random = np.random.default_rng(0)
        self._is_seeded = False

    def state_dict(self) -> dict[str, object]:
        return {"random": dict(self.random.bit_generator.state)} if self._is_seeded else {}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        if "random" in state:
            self.random.bit_generator.state = cast("dict[str, object]", state["random"])
            self._is_seeded = True

    def before_train(self, run: Run) -> None:
        if not self._is_seeded:  # Nothing is drawn for it: no other random number changes.
            seed = (torch.initial_seed() % 2**64, crc32(self.name.encode()), run.world.rank)
            self.random = np.random.default_rng(seed)
            self._is_seeded = True

    def before_forward(self, run: Run) -> None:
        if run.phase != "train" or self._is_over(run):
            return
        if self.probability < 1 and self.random.random() >= self.probability:
            return
        share = float(self.random.beta(self.alpha, self.alpha))
        inputs, targets = (self._part(run.batch, place) for place in (self.inputs, self.targets))
        order = torch.from_numpy(self.random.permutation(size_of(inputs)))
        mixed = self.mix(inputs, targets, share, order)
        for place, part in zip((self.inputs, self.targets), mixed, strict=True):
            run.batch = _with_part(run.batch, place, part)

    def mix(
        self, inputs: Tensor, targets: Tensor, share: float, order: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return inputs and targets of which that share is their own, the rest from another.

        Args:
            inputs: The inputs; they are not changed.
            targets: The targets.
            share: What each sample keeps of itself.
            order: The sample with which each is mixed.
        """
        raise NotImplementedError

    def blend(self, values: Tensor, share: float, order: Tensor) -> Tensor:
        """Return the weighted mean of each value and another."""
        return values * share + values[order.to(values.device)] * (1 - share)

    def soft(self, targets: Tensor) -> Tensor:
        """Return class targets as shares of classes, as ``cross_entropy`` takes them."""
        if targets.is_floating_point():
            return targets
        if self.classes is None:
            raise HookError(
                f"{type(self).__name__}: the targets are classes, {describe(targets)}: give "
                "classes=, how many there are."
            )
        try:
            shares = torch.nn.functional.one_hot(targets.long(), self.classes)
        except RuntimeError as error:
            raise HookError(
                f"{type(self).__name__}: the targets reach from {int(targets.min())} to "
                f"{int(targets.max())}, and classes={self.classes} allows 0 to {self.classes - 1}."
            ) from error
        return shares.movedim(-1, 1).to(torch.get_default_dtype())

    def _is_over(self, run: Run) -> bool:
        return self.until is not None and self.until.reached(run.progress)

    def _part(self, batch: object, place: Place) -> Tensor:
        found: object = None
        if isinstance(batch, Mapping):
            found = batch.get(place)
        elif isinstance(place, str):
            found = getattr(batch, place, None)
        elif isinstance(batch, Sequence) and -len(batch) <= place < len(batch):
            found = batch[place]
        if not isinstance(found, Tensor):
            raise HookError(
                f"{type(self).__name__}: there is no tensor at {place!r} of the batch, which is "
                f"{describe(batch)}: give inputs= and targets=, the places or keys of the two."
            )
        return found


def _with_part(batch: object, place: Place, part: Tensor) -> object:
    """Return a batch with another part; the batch itself may be read again, so it stays."""
    if isinstance(batch, Mapping):
        return {**batch, place: part}
    if isinstance(batch, tuple) and hasattr(batch, "_replace"):
        name = place if isinstance(place, str) else batch._fields[place]  # type: ignore[attr-defined]
        return batch._replace(**{name: part})
    if is_dataclass(batch) and not isinstance(batch, type):
        return replace(batch, **{str(place): part})
    parts = list(cast("Sequence[object]", batch))
    parts[cast("int", place)] = part
    return parts if isinstance(batch, list) else tuple(parts)
