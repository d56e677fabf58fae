"""Passes over data that every rank reads as a whole, keeping its part of each batch.

All ranks must get the same batches, so nothing that the data draws may depend on what the models
draw meanwhile: the first batch is drawn from the shared order, like the order of a sampler, and all
others from a random stream that follows from the key of the pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain, islice

from hookloop.data.position.indices import PassStart
from hookloop.data.random.apart import RandomStream
from hookloop.data.ranks.cut import Cut

_END = object()


class SharedPasses:
    """Starts passes over data that cannot be cut before it is read.

    Args:
        cut: Takes this rank's part.
        is_shard: Whether the data is already that of one rank. Then the ranks draw different
            random numbers.
        has_stream: Whether the data may draw random numbers while it is read.
    """

    def __init__(self, cut: Cut, *, is_shard: bool, has_stream: bool) -> None:
        self._cut = cut
        self._is_shard = is_shard
        self._has_stream = has_stream
        self._stream: RandomStream | None = None
        self._loaded: Mapping[str, object] = {}

    def begin(
        self, read: Callable[[], Iterator[object]], start: PassStart, *, skips: bool = True
    ) -> Iterator[object]:
        """Start a pass.

        Args:
            read: Starts to read the data.
            start: Where to start.
            skips: Whether batches before the position have to be read and dropped. Otherwise the
                data continues there by itself.
        """
        self._cut.shares.clear()
        loaded, self._loaded = self._loaded, {}
        is_inside = start.skip > 0 and not skips
        stream = self._stream if is_inside else None
        if stream is None and self._has_stream:
            key = start.key + self._cut.rank if self._is_shard else start.key
            stream = RandomStream(key % 2**64)
        if is_inside and stream is not None and loaded:
            stream.load_state_dict(loaded)
        self._stream = stream
        if self._is_shard and stream is not None:
            with stream:
                batches = read()
            batches = _drawn_from(stream, batches)
        else:
            batches = read()
            if stream is not None:
                outside = 0 if is_inside else 1
                batches = chain(islice(batches, outside), _drawn_from(stream, batches))
        if skips:
            next(islice(batches, start.skip, start.skip), None)
        if not start.skip:  # Draw the order now, as long as the generators are those of the order.
            batches = chain(list(islice(batches, 1)), batches)
        return map(self._cut.count, batches) if self._is_shard else self._cut.all(batches)

    def state_dict(self) -> dict[str, object] | None:
        """Return the state of the random stream, if there is one."""
        return self._stream.state_dict() if self._stream is not None else None

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Continue the stream from what `state_dict` returned, in the next pass."""
        self._loaded = state


def _drawn_from(stream: RandomStream, batches: Iterator[object]) -> Iterator[object]:
    while True:
        with stream:
            batch = next(batches, _END)
        if batch is _END:
            return
        yield batch
