"""`CutMix`: train on images into which a box of another image is pasted."""

from __future__ import annotations

from math import prod
from types import EllipsisType

from torch import Tensor

from hookloop.data.description import describe
from hookloop.errors import HookError
from hookloop.hooks.data._batch_parts import BatchKey
from hookloop.hooks.data._mixing import Mixing


class CutMix(Mixing):
    """Paste a box from another sample of the batch into each sample.

    The share that a sample keeps is drawn from Beta(alpha, alpha), once per microbatch, and the
    position of the box uniformly; what is cut off at a border does not count. Targets are mixed by
    the share that was kept: classes become probabilities of classes, for a loss that takes them,
    as ``cross_entropy`` does. Masks, which are targets with the height and width of the inputs,
    are pasted instead. Validation and test are not changed. The random numbers are the hook's own
    and part of its state, so a resume repeats them.

    Args:
        classes: The number of classes; None if the targets are not classes.
        alpha: Both parameters of the Beta distribution; with 1 all shares are equally likely.
        probability: Share of the batches that are mixed.
        until: Moment of the run after which no batch is mixed: ``"90 epochs"``; None to mix to the
            end.
        dims: Last dimensions of the inputs that the box spans: 2 for images, 1 for sequences.
        inputs: Where the inputs are in a batch: an index, a key or an attribute.
        targets: Where the targets are.

    Example:
        >>> str(CutMix(classes=10, until="90 epochs").until)
        '90 epochs'
    """

    def __init__(
        self,
        classes: int | None = None,
        *,
        alpha: float = 1.0,
        probability: float = 1.0,
        until: int | str | None = None,
        dims: int = 2,
        inputs: BatchKey = 0,
        targets: BatchKey = 1,
    ) -> None:
        super().__init__(classes, alpha, probability, until, inputs, targets)
        if dims not in (1, 2, 3):
            raise HookError(f"CutMix: dims={dims}: write 2 for images, 1 for sequences.")
        self.dims = dims

    def mix(
        self, inputs: Tensor, targets: Tensor, share: float, order: Tensor
    ) -> tuple[Tensor, Tensor]:
        if inputs.ndim <= self.dims:
            raise HookError(
                f"CutMix: the inputs are {describe(inputs)}, too few dimensions for a box of "
                f"{self.dims}: give dims=, 1 for sequences."
            )
        sides = inputs.shape[-self.dims :]
        box = tuple(slice(*self._edge(side, share)) for side in sides)
        # Not the share that was drawn: a box at a border is smaller than that.
        own = 1 - prod(
            (part.stop - part.start) / side for part, side in zip(box, sides, strict=True)
        )
        # A mask belongs to its pixels, so it is pasted; any other target is mixed.
        if targets.ndim > self.dims and targets.shape[-self.dims :] == sides:
            return _paste(inputs, box, order), _paste(targets, box, order)
        return _paste(inputs, box, order), self.blend(self.soft(targets), own, order)

    def _edge(self, side: int, share: float) -> tuple[int, int]:
        """Return start and end of the box in one dimension; it is cut off at the borders."""
        # The root makes the box's area, not its side, the share that comes from the other sample.
        length = round(side * (1 - share) ** (1 / self.dims))
        start = int(self.random.integers(side)) - length // 2
        return max(start, 0), min(start + length, side)


def _paste(values: Tensor, box: tuple[slice, ...], order: Tensor) -> Tensor:
    area: tuple[slice | EllipsisType, ...] = (..., *box)
    pasted = values.clone()
    pasted[area] = values[order.to(values.device)][area]
    return pasted
