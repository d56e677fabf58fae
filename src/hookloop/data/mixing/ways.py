"""The ways to mix streams: which of them the next batch is taken from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar, cast

import torch
from torch import Tensor

from hookloop.data.batch import counted_part
from hookloop.data.mixing.weights import Mix, Weights, draw, way_of
from hookloop.data.random.per_sample import derive_key
from hookloop.data.ranks.place import Share, zip_shares
from hookloop.data.reading.current import nothing_read
from hookloop.data.stream import Stream
from hookloop.errors import DataError
from hookloop.every import Counters

TRAIN = "train"
"""The name of what is not a single stream."""

LARGEST_KEY = 1 << 53
"""Keys are below this, so that a checkpoint holds them in any format."""

Taken = tuple[str, object, list[Share]]
"""Of which stream a microbatch is, the microbatch, and its share; no share in a single process."""


class Way(ABC):
    """How streams are mixed.

    Args:
        streams: The streams by name.
        mix: What was given as ``mix=``.
        seed: From which streams are drawn, where they are drawn.

    Attributes:
        name: ``"zip"``, ``"cycle"``, ``"in order"`` or ``"weights"``.
        is_zipped: Whether a microbatch is a mapping from all streams to a batch of each.
        restarts: Whether a stream that ends begins again within an epoch.
        joins: Returns the length of an epoch from those of the streams.
        current: The stream whose turn it is, where they take turns.
        progress: The progress of the run, which weights may follow.
    """

    name: str
    is_zipped = False
    restarts = False
    joins: ClassVar[Callable[..., int]] = staticmethod(sum)

    def __init__(self, streams: Mapping[str, Stream], mix: Mix, seed: int | None) -> None:
        self.streams = streams
        self.mix = mix
        self.progress: Counters | None = None
        self.current = next(iter(streams))
        self._seed = seed
        # Kept by every way, so that a run may change its way and change it back.
        self._key: int | None = None
        self._drawn = 0

    @abstractmethod
    def take(self, position: int) -> Taken | None:
        """Return the next microbatch of an epoch that has given so many; None at its end."""

    @property
    def length(self) -> int | None:
        """How many microbatches an epoch has, or None if that is unknown."""
        lengths = [stream.num_batches for stream in self.streams.values()]
        return None if None in lengths else self.joins(lengths)

    def left(self, position: int) -> int | None:
        """Return how many microbatches an epoch still has after so many, or None if unknown."""
        total = self.length
        return None if total is None else max(0, total - position)

    def leave(self) -> None:
        """Leave an epoch, and with it the passes of the streams."""
        self.current = next(iter(self.streams))
        for stream in self.streams.values():
            stream.leave()

    def continue_as(self, other: Way) -> None:
        """Draw what another one of the same way will draw."""
        self.progress, self._key, self._drawn = other.progress, other._key, other._drawn

    def state_dict(self) -> dict[str, object]:
        """Return where it stands."""
        state = {"current": self.current, "key": self._key, "drawn": self._drawn}
        return {"way": self.name, **state, "weights": None}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Go to what `state_dict` returned, perhaps by another way."""
        if state["current"] in self.streams:
            self.current = str(state["current"])
        self._key = cast("int | None", state["key"])
        self._drawn = cast("int", state["drawn"])


class Cycle(Way):
    """A batch of each stream, until the longest ends; the others begin again."""

    name = "cycle"
    is_zipped = True
    restarts = True
    joins: ClassVar[Callable[..., int]] = staticmethod(max)

    def take(self, position: int) -> Taken | None:
        """Return a batch of each stream."""
        return None if self.left(position) == 0 else self._take_each()

    def _take_each(self) -> Taken | None:
        batch: dict[str, object] = {}
        shares: dict[str, Share] = {}
        for name, stream in self.streams.items():
            taken = _next_of(stream, restarts=self.restarts)
            if not taken:
                return None
            batch[name] = taken[0]
            if own := stream.shares():
                shares[name] = own[0]
        return TRAIN, batch, [zip_shares(shares, counted_part(batch))] if shares else []


class Zip(Cycle):
    """A batch of each stream, until the shortest ends."""

    name = "zip"
    restarts = False
    joins: ClassVar[Callable[..., int]] = staticmethod(min)

    def take(self, position: int) -> Taken | None:
        """Return a batch of each stream."""
        # Looked up before anything is read: a batch that is read and not used would have drawn
        # random numbers.
        for stream in self.streams.values():
            if stream.batches_left == 0:
                return None
        return self._take_each()

    def left(self, position: int) -> int | None:
        """Return how many batches the stream has that ends first."""
        left = [stream.batches_left for stream in self.streams.values()]
        return None if None in left else self.joins(left)


class InOrder(Way):
    """One stream after the other."""

    name = "in order"

    def take(self, position: int) -> Taken | None:
        """Return the next batch of the current stream, or the first one of the next stream."""
        names = list(self.streams)
        for name in names[names.index(self.current) :]:
            self.current, stream = name, self.streams[name]
            if taken := _next_of(stream, restarts=False):
                return name, taken[0], stream.shares() or []
        return None

    def left(self, position: int) -> int | None:
        """Return how many batches the streams have from the current one on."""
        names = list(self.streams)
        rest = names[names.index(self.current) :]
        left = [self.streams[name].batches_left for name in rest]
        return None if None in left else self.joins(left)


class Weighted(Way):
    """Streams drawn by weights; each continues from one epoch to the next."""

    name = "weights"
    restarts = True

    def __init__(self, streams: Mapping[str, Stream], mix: Mix, seed: int | None) -> None:
        super().__init__(streams, mix, seed)
        self._weights = Weights(mix, list(streams))  # type: ignore[arg-type]
        self._set: dict[str, float] | None = None  # Weights that a hook has set.

    def take(self, position: int) -> Taken | None:
        """Return a batch of the stream that is drawn."""
        if self.left(position) == 0:
            return None
        weights = self._weights.at(cast("Counters", self.progress))
        name = draw(self._find_key(), self._drawn, weights)
        stream = self.streams[name]
        taken = _next_of(stream, restarts=True)
        self._drawn += 1
        return (name, taken[0], stream.shares() or []) if taken else None

    def leave(self) -> None:
        """Leave an epoch; the streams stay where they are."""
        self.current = next(iter(self.streams))

    def weigh(self, weights: Mapping[str, float], name: str) -> None:
        """Draw by other weights from now on; ``name`` is that of the data in messages."""
        self._weights = Weights(weights, list(self.streams))
        for stream, weight in weights.items():
            if isinstance(weight, Mapping):
                raise DataError(f"{name}.mix: the weight of '{stream}' has to be a number.")
        self.mix = self._set = {stream: float(weight) for stream, weight in weights.items()}

    def state_dict(self) -> dict[str, object]:
        """Return where it stands, with weights that were set."""
        return {**super().state_dict(), "weights": self._set}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Go to what `state_dict` returned."""
        super().load_state_dict(state)
        weights = cast("Mapping[str, float] | None", state["weights"])
        if weights is not None and set(weights) == set(self.streams):
            self.weigh(weights, "train_data")

    def _find_key(self) -> int:
        """Return the key of all draws, which is the same on all ranks."""
        if self._key is None and self._seed is not None:
            self._key = self._seed % LARGEST_KEY
        if self._key is None:
            order = self.streams[self.current].order.now
            state = torch.get_rng_state() if order is None else cast("Tensor", order.state["torch"])
            self._key = derive_key([state], 0) % LARGEST_KEY
        return self._key


def make_way(streams: Mapping[str, Stream], mix: Mix, seed: int | None) -> Way:
    """Return the way that ``mix=`` asks for."""
    kinds: list[type[Way]] = [Zip, Cycle, InOrder, Weighted]
    name = way_of(mix, list(streams))
    return next(kind for kind in kinds if kind.name == name)(streams, mix, seed)


def _next_of(stream: Stream, *, restarts: bool) -> list[object]:
    was_inside = stream.at.batches > 0
    taken = stream.open_pass.take(stream.groups, 1, restarts=restarts)
    if not taken and (restarts or not was_inside) and not stream.is_one_pass:
        raise nothing_read(stream.data, stream.name, stream.passes)
    return taken
