"""Count samples and tokens, where an interval or a hook asks for them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from torch import Tensor

from hookloop.data.batch import size_of
from hookloop.data.description import describe
from hookloop.engine.hook import acts_at, interval_at, kind_of
from hookloop.errors import DataError, HookError, nearest
from hookloop.every import COUNTED

if TYPE_CHECKING:
    from hookloop.engine.loop import Loop
    from hookloop.engine.run import Run

CountTokens = Callable[[Any], int]
"""Returns the tokens of a batch."""

TOKENS = "input_ids"


def start_counting(loop: Loop, count_tokens: CountTokens | None) -> Counter | None:
    """Return what counts in the training that begins, as far as somebody asks for it."""
    progress, asked = loop.run.progress, _asked(loop)
    for unit in COUNTED:
        # A count with a gap in it would be wrong, so what is not counted now is unknown.
        setattr(progress, unit, (getattr(progress, unit) or 0) if unit in asked else None)
    return Counter(asked, count_tokens or count_ids) if asked else None


class Counter:
    """Counts the samples and tokens of each iteration, over all ranks, as they were read.

    Args:
        units: What to count.
        count_tokens: Returns the tokens of a batch.
    """

    def __init__(self, units: Collection[str], count_tokens: CountTokens) -> None:
        self._counts_samples = "samples" in units
        self._counts_tokens = "tokens" in units
        self._count_tokens = count_tokens

    def __call__(self, run: Run, batches: list[object]) -> None:
        """Count an iteration."""
        progress = run.progress
        if self._counts_samples:
            progress.last_samples = _samples(run, batches)
            progress.samples = (progress.samples or 0) + progress.last_samples
        if self._counts_tokens:
            own = sum(int(self._count_tokens(batch)) for batch in _counting(run, batches))
            progress.last_tokens = run.reduce(own, "sum") // run.world.tensor
            progress.tokens = (progress.tokens or 0) + progress.last_tokens


def count_ids(batch: object) -> int:
    """Count the elements of ``input_ids``, padding included."""
    ids = batch[TOKENS] if isinstance(batch, Mapping) and TOKENS in batch else None
    if not isinstance(ids, Tensor):
        raise DataError(
            f"Tokens cannot be counted: train_data gives {describe(batch)}, without a tensor "
            f"'{TOKENS}'. Give count_tokens=, a function that returns the tokens of a batch.",
            argument="count_tokens",
        )
    return ids.numel()


def _samples(run: Run, batches: list[object]) -> int:
    shares = run.train_data.shares() if run.train_data is not None else None
    if shares is None:  # Each rank may have data of its own.
        return run.reduce(sum(map(size_of, batches)), "sum") // run.world.tensor
    whole = shares[:: max(1, len(run.world.leaves))]  # Logical ranks read the same batches.
    totals = [share.total for share in whole if share.total is not None]
    if len(totals) == len(whole):
        return sum(totals)
    return run.reduce(sum(share.own for share in shares), "sum") // run.world.tensor


def _counting(run: Run, batches: list[object]) -> list[object]:
    """Return the batches that count; a rank without a part of one reads a sample all the same."""
    shares = run.train_data.shares() if run.train_data is not None else None
    if shares is None:
        return batches
    return [batch for batch, share in zip(batches, shares, strict=True) if share.weight]


def _asked(loop: Loop) -> set[str]:
    """Return the units that an interval is in, or that a hook declares."""
    run = loop.run
    asked: set[str] = {*loop.validation.units}
    for hook in run.hooks:
        for unit in hook.counts:
            if unit not in COUNTED:
                raise HookError(
                    f"{kind_of(hook)}.counts has {unit!r}: write {' or '.join(COUNTED)}."
                    f"{nearest(str(unit), COUNTED)}"
                )
        asked |= set(hook.counts)
        for name in acts_at(hook, run._plan.points):
            if (interval := interval_at(hook, run._plan.points[name])) is not None:
                asked.add(interval.unit)
    return asked & set(COUNTED)
