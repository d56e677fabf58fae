"""How much of a global batch a rank has read, and what its loss counts for."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import ceil, floor
from typing import Any, NamedTuple

from torch import Tensor

from hookloop.errors import ModelError


class Share(NamedTuple):
    """How much of a global batch a rank has read.

    Attributes:
        own: Samples of this rank's cut. If it is 0, one sample was read that must not count.
        total: Samples of the global batch; None if no rank knows, because each has its own data.
        streams: The share of each stream, where all of them give a batch. Then ``own`` and
            ``total`` are those of the stream by which one process counts the samples.
    """

    own: int
    total: int | None
    streams: Mapping[str, Share] | None = None

    @property
    def weight(self) -> float:
        """What the loss of this rank counts for; of all ranks together it is ``total``."""
        if self.streams is None:
            return self.own
        own, total = _sums(self.streams)
        # If all streams are cut in the same proportion, this is `own` without any rounding.
        return own if total is None or self.total is None else self.total * own / total

    def is_even(self, ranks: int) -> bool:
        """Return whether all streams are cut in the same proportions, as far as that is known."""
        totals = [one.total for one in (self.streams or {}).values() if one.total]
        # The first rank has the most samples and the last one the fewest. If both have the same
        # part of each stream, so has every rank between them.
        largest, smallest = (
            [Fraction(cut(one / ranks), one) for one in totals] for cut in (ceil, floor)
        )
        return len({*largest}) < 2 and len({*smallest}) < 2


class Place(NamedTuple):
    """Which part of the data ``run.batch`` is, on many ranks.

    Attributes:
        batch: The number of the global batch in its pass over the data, from 1.
        own: Samples of this rank's part. If it is 0, the batch is one sample that does not count.
        total: Samples of the global batch; None if each rank has data of its own.
        streams: The same for each stream, where all of them give a batch.
    """

    batch: int
    own: int
    total: int | None
    streams: Mapping[str, Share] | None = None


def zip_shares(streams: Mapping[str, Share], counted: str) -> Share:
    """Return the share of a batch that consists of a batch of each stream.

    Args:
        streams: The share of each.
        counted: The stream by which one process counts the samples.

    >>> share = zip_shares({"a": Share(2, 3), "b": Share(2, 4)}, "a")
    >>> share.own, share.total, round(share.weight, 3), share.is_even(2)
    (2, 3, 1.714, False)
    """
    total = None if _sums(streams)[1] is None else streams[counted].total
    return Share(streams[counted].own, total, streams)


def losses_of_streams(output: Mapping[str, Any], place: Place | None) -> dict[str, Tensor]:
    """Return what the losses of several streams add to the whole, by their samples on this rank.

    Args:
        output: What a step returned, with a mapping from the streams to their losses in it.
        place: Which part of the data the batch is; None in a single process.

    Raises:
        ModelError: If there is not one loss for each stream, or a weight beside them, or something
            that is not a tensor.
    """
    losses: Mapping[str, Tensor] = output["loss"]
    if "weight" in output:
        raise ModelError(
            "'weight' was returned with several losses: return their sum with it, or leave it out."
        )
    for name, loss in losses.items():
        if not isinstance(loss, Tensor):
            raise ModelError(
                f"Of several losses, '{name}' is {type(loss).__name__}: return a tensor for each, "
                "without .item() or float(), and leave out what has no loss in this batch."
            )
    if not losses:
        raise ModelError("'loss' is an empty mapping: return the loss of at least one stream.")
    streams = place.streams if place is not None else None
    if streams is not None and set(losses) != set(streams):
        raise ModelError(
            f"'loss' has losses of {', '.join(map(str, losses)) or 'nothing'}, and the streams are "
            f"{', '.join(streams)}: return one loss for each stream."
        )
    own, total = _sums(streams or {})
    if streams is None or total is None or not own:
        return dict(losses)
    # The sum counts for `own / total`. What a stream differs from that is made up for here.
    weights = {name: one.own * total / ((one.total or 1) * own) for name, one in streams.items()}
    return {name: _weighted(losses[name], weights[name]) for name in streams}


def _weighted(loss: Tensor, weight: float) -> Tensor:
    # A loss that does not count may be NaN. Its parameters still take part.
    return loss * weight if weight else (loss * 0.0).nan_to_num(0.0)


def _sums(streams: Mapping[str, Share]) -> tuple[int, int | None]:
    """Return the samples of all streams: of this rank, and of all ranks if these are known."""
    own, totals = sum(one.own for one in streams.values()), [one.total for one in streams.values()]
    known = [total for total in totals if total is not None]
    return own, sum(known) if len(known) == len(totals) else None
