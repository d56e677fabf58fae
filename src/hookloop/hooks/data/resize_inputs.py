"""`ResizeInputs`: train on small images first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch.nn import functional

from hookloop.data.description import describe
from hookloop.engine.hook import Hook
from hookloop.errors import HookError
from hookloop.hooks._intervals import moment_of
from hookloop.hooks.data._batch_parts import BatchKey, part_of, with_part

if TYPE_CHECKING:
    from hookloop.engine.run import Run

DIMENSIONS = 4


class ResizeInputs(Hook):
    """Train on images that are small at first and grow to their full size, to save time.

    The sides grow evenly from the share ``start`` of their length, and are whole at ``until``. The
    model must take images of any size. Validation and test are not changed, and neither are
    targets: boxes and masks would no longer fit.

    Args:
        until: When images reach their full size: ``"10 epochs"``, ``5000``.
        start: The share of each side at the start.
        multiple: Sides are multiples of this many pixels.
        inputs: Where the images are in a batch: an index, a key or an attribute.

    Example:
        >>> ResizeInputs("10 epochs", start=0.5, multiple=4).side(224, share=0.1)
        124
    """

    takes_part_in_training = True
    draws_random_numbers = False

    def __init__(
        self, until: int | str, *, start: float = 0.5, multiple: int = 4, inputs: BatchKey = 0
    ) -> None:
        if not 0 < start < 1:
            raise HookError(f"ResizeInputs: start={start}: it must be above 0 and below 1.")
        if multiple < 1:
            raise HookError(f"ResizeInputs: multiple={multiple}: it must be at least 1.")
        self.until = moment_of(self, "until", until)
        self.start = start
        self.multiple = multiple
        self.inputs = inputs

    def side(self, whole: int, share: float) -> int:
        """Return the pixels of a side, after a share of the growth."""
        wanted = whole * (self.start + (1 - self.start) * share)
        return min(whole, max(1, round(wanted / self.multiple)) * self.multiple)

    def before_forward(self, run: Run) -> None:
        if run.phase != "train" or self.until.reached(run.progress):
            return
        images = part_of(self, run.batch, self.inputs)
        if images.ndim != DIMENSIONS or not images.is_floating_point():
            raise HookError(
                f"ResizeInputs: the inputs are {describe(images)}: it takes floating-point images "
                "of the shape (samples, channels, height, width)."
            )
        share = self.until.done(run.progress) / self.until.count
        sides = [self.side(whole, share) for whole in images.shape[2:]]
        if sides != list(images.shape[2:]):
            small = functional.interpolate(images, sides, mode="bilinear", antialias=True)
            run.batch = with_part(run.batch, self.inputs, small)
