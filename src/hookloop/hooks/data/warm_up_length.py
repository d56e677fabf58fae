"""`WarmUpLength`: train on short sequences first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from torch import Tensor

from hookloop.data.description import describe
from hookloop.engine.hook import Hook
from hookloop.errors import HookError
from hookloop.hooks._intervals import moment_of
from hookloop.hooks.data._batch_parts import BatchKey, with_part

if TYPE_CHECKING:
    from hookloop.engine.run import Run


class WarmUpLength(Hook):
    """Train on sequences that are cut short at first and grow to their full length.

    The length grows evenly from ``start``, and is that of the batch at ``until``; the model does
    not train on what is cut off. Every tensor of the batch that is as long in its second dimension
    as the longest one is cut: inputs, mask, and targets for each position. Validation and test are
    not changed. Tokens are counted as they were read.

    Args:
        until: When sequences reach their full length: ``"2 epochs"``, ``1000``.
        start: Length at the start, in positions.
        multiple: Lengths are multiples of this.

    Example:
        >>> WarmUpLength(1000, start=64, multiple=8).length(1024, share=0.5)
        544
    """

    takes_part_in_training = True
    draws_random_numbers = False

    def __init__(self, until: int | str, *, start: int = 64, multiple: int = 8) -> None:
        for name, value in (("start", start), ("multiple", multiple)):
            if value < 1:
                raise HookError(f"WarmUpLength: {name}={value}: it must be at least 1.")
        self.until = moment_of(self, "until", until)
        self.start = start
        self.multiple = multiple

    def length(self, whole: int, share: float) -> int:
        """Return the positions of a sequence, after a share of the growth."""
        wanted = self.start + (whole - self.start) * share
        return min(whole, max(1, round(wanted / self.multiple)) * self.multiple)

    def before_forward(self, run: Run) -> None:
        if run.phase != "train" or self.until.reached(run.progress):
            return
        parts = _sequences(run.batch)
        if not parts:
            raise HookError(
                f"WarmUpLength: the batch is {describe(run.batch)}: it needs tensors of the shape "
                "(samples, positions, ...), alone or in a tuple, a list or a mapping."
            )
        whole = max(part.shape[1] for part in parts.values())
        length = self.length(whole, self.until.done(run.progress) / self.until.count)
        for key, part in parts.items():
            if part.shape[1] == whole:
                cut = part[:, :length]
                run.batch = cut if key is None else with_part(run.batch, key, cut)


def _sequences(batch: object) -> dict[BatchKey | None, Tensor]:
    """Return the tensors with positions, by where they are; None is the batch itself."""
    named: list[tuple[BatchKey | None, object]] = [(None, batch)]
    if isinstance(batch, Mapping):
        named = list(batch.items())
    elif isinstance(batch, tuple | list):
        named = list(enumerate(batch))
    return {key: part for key, part in named if isinstance(part, Tensor) and part.ndim > 1}
