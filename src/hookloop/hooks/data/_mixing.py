"""`Mixing`, the base of `MixUp` and `CutMix`: draw shares and partners, replace the batch.

The two differ only in how they mix two samples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast
from zlib import crc32

import numpy as np
import torch
from torch import Tensor

from hookloop.data.batch import size_of
from hookloop.data.description import describe
from hookloop.engine.hook import Priority
from hookloop.errors import HookError
from hookloop.hooks._intervals import moment_of
from hookloop.hooks._state_of_ranks import StateOfRanks
from hookloop.hooks.data._batch_parts import BatchKey, part_of, with_part

if TYPE_CHECKING:
    from hookloop.engine.run import Run


class Mixing(StateOfRanks):
    """Mix each sample of a training batch with another sample of the same batch.

    How much of each goes into the mix is drawn from a Beta distribution, once per microbatch. The
    random numbers are the hook's own and part of its state, so a resume repeats them.

    Args:
        classes: The number of classes; None if the targets are not classes.
        alpha: Both parameters of the Beta distribution.
        probability: Share of the batches that are mixed.
        until: Moment of the run after which no batch is mixed.
        inputs: Where the inputs are in a batch: an index, a key or an attribute.
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
        inputs: BatchKey,
        targets: BatchKey,
    ) -> None:
        kind = type(self).__name__
        if classes is not None and classes < 2:
            raise HookError(f"{kind}: classes={classes}: give the number of classes, 2 or more.")
        if not alpha > 0:
            raise HookError(f"{kind}: alpha={alpha}: it must be above 0.")
        if not 0 < probability <= 1:
            raise HookError(f"{kind}: probability={probability}: it must be above 0, at most 1.")
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
        if state.get("random") is not None:
            self.random.bit_generator.state = cast("dict[str, object]", state["random"])
            self._is_seeded = True

    def divide_state(
        self, states: Sequence[Mapping[str, object]], rank: int, size: int
    ) -> Mapping[str, object]:
        # Ranks that are new seed their own numbers.
        return states[rank] if rank < len(states) else {"random": None}

    def before_train(self, run: Run) -> None:
        if not (self._is_seeded or run.world.logical):
            # The seed is read, not drawn, so that no random number of the training changes. The
            # name keeps two hooks apart; hash() would differ from process to process. Each rank
            # has samples of its own and mixes them in its own way.
            seed = (torch.initial_seed() % 2**64, crc32(self.name.encode()), run.world.rank)
            self.random = np.random.default_rng(seed)
            self._is_seeded = True

    def before_forward(self, run: Run) -> None:
        if run.phase != "train" or self._is_over(run):
            return
        if run.world.logical:  # From the random numbers of this part, which any process draws.
            self.random = np.random.default_rng(int(torch.randint(2**62, ())))
        if self.probability < 1 and self.random.random() >= self.probability:
            return
        share = float(self.random.beta(self.alpha, self.alpha))
        inputs, targets = (part_of(self, run.batch, key) for key in (self.inputs, self.targets))
        # Drawn with NumPy on the CPU: every device mixes the same samples.
        order = torch.from_numpy(self.random.permutation(size_of(inputs)))
        mixed = self.mix(inputs, targets, share, order)
        for key, part in zip((self.inputs, self.targets), mixed, strict=True):
            run.batch = with_part(run.batch, key, part)

    def mix(
        self, inputs: Tensor, targets: Tensor, share: float, order: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return mixed inputs and targets.

        Args:
            inputs: The inputs; they are not changed.
            targets: The targets.
            share: How much each sample keeps of itself, from 0 to 1.
            order: The index of the sample that each sample is mixed with.
        """
        raise NotImplementedError

    def blend(self, values: Tensor, share: float, order: Tensor) -> Tensor:
        """Return the weighted mean of each value and its partner."""
        return values * share + values[order.to(values.device)] * (1 - share)

    def soft(self, targets: Tensor) -> Tensor:
        """Return class targets as probabilities of classes, as ``cross_entropy`` takes them."""
        if targets.is_floating_point():
            return targets
        if self.classes is None:
            raise HookError(
                f"{type(self).__name__}: the targets are classes, {describe(targets)}: give "
                "classes=, the number of classes."
            )
        try:
            shares = torch.nn.functional.one_hot(targets.long(), self.classes)
        except RuntimeError as error:
            raise HookError(
                f"{type(self).__name__}: the targets reach from {int(targets.min())} to "
                f"{int(targets.max())}, but classes={self.classes} allows 0 to {self.classes - 1}."
            ) from error
        # one_hot puts the classes last, cross_entropy expects them in the second dimension.
        return shares.movedim(-1, 1).to(torch.get_default_dtype())

    def _is_over(self, run: Run) -> bool:
        return self.until is not None and self.until.reached(run.progress)
