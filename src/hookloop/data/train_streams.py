"""Streams of training data as one whole: how long it is, and what all of them do together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from hookloop.data.exactness import SeedSamples
from hookloop.data.mixture import way_of
from hookloop.data.position.order import Order
from hookloop.data.position.position import Position
from hookloop.data.replaced_data import NoteLength
from hookloop.data.source import Batches, Groups, Source
from hookloop.errors import DataError, nearest
from hookloop.every import Counters


class TrainStreams(Source):
    """Several streams of training data, each a `Source` with its own position.

    Args:
        data: The streams by name.
        mix: How they are mixed.
        name: ``train_data``.
        seed_samples: As for `Source`.

    Attributes:
        streams: The streams by name.
        way: How they are mixed: ``"zip"``, ``"cycle"``, ``"in order"`` or ``"weights"``.
    """

    # Not the constructor of `Source`, which makes a reader of data. Nothing here reads any.
    def __init__(
        self, data: Mapping[str, Batches], mix: object, name: str, seed_samples: SeedSamples
    ) -> None:
        if not data:
            raise DataError(f"{name} is an empty mapping: it has no stream.", argument=name)
        self.way = way_of(mix, list(map(str, data)))
        self.name = name
        self.streams = {
            str(key): Source(value, f"{name}['{key}']", seed_samples=seed_samples)
            for key, value in data.items()
        }
        for stream in self.streams.values():
            stream.set_epoch_per_pass()  # Their passes are not the epochs of the run.
        self._seed_samples = seed_samples
        self._progress: Counters | None = None
        self._current = next(iter(self.streams))
        self._is_over = False
        self.at = Position()
        self._groups: Groups | None = None
        self._goes_over = False

    def parts(self) -> Sequence[Source]:
        """Return the streams."""
        return list(self.streams.values())

    @property
    def data(self) -> dict[str, Batches]:  # type: ignore[override]
        """The data of each stream."""
        return {name: stream.data for name, stream in self.streams.items()}

    def follow(self, progress: Counters, note_length: NoteLength | None) -> None:
        """Take part in a run, whose progress weights may follow."""
        self._progress = progress
        is_endless = self.way in ("cycle", "weights") and self.num_batches is None
        if is_endless and note_length is not None:
            unknown = [one.name for one in self.parts() if one.num_batches is None]
            raise DataError(
                f"{' and '.join(unknown)} has no length, so an epoch of this mixture would never "
                "end: give epoch_iters=.",
                argument="train_data",
            )
        for stream in self.streams.values():
            if note_length is not None:
                stream.follow(progress, lambda _: note_length(self.num_batches))
            stream._is_continuous = note_length is None or self.way == "weights"

    @property
    def inexact(self) -> str | None:
        """Why a resume may not be exact, and of which streams, or None if it is."""
        found = [f"{one.name}: {one.inexact}" for one in self.parts() if one.inexact is not None]
        return "; ".join(found) or None

    @property
    def num_batches(self) -> int | None:
        """How many microbatches an epoch has: of the shortest or longest stream, or of all."""
        lengths = [stream.num_batches for stream in self.streams.values()]
        known = [length for length in lengths if length is not None]
        if len(known) < len(lengths):
            return None
        return {"zip": min, "cycle": max}.get(self.way, sum)(known)

    @property
    def batches_left(self) -> int | None:
        """How many microbatches the current pass still has, or None if that is unknown."""
        if self._is_over:
            return 0
        if self.way in ("cycle", "weights"):
            total = self.num_batches
            return None if total is None else max(0, total - self.at.batches)
        names = list(self.streams)
        first = names.index(self._current) if self.way == "in order" else 0
        left = [self.streams[name].batches_left for name in names[first:]]
        known = [count for count in left if count is not None]
        if len(known) < len(left):
            return None
        return min(known) if self.way == "zip" else sum(known)

    @property
    def is_one_pass(self) -> bool:
        """Whether one of the streams can be read only once."""
        return any(stream.is_one_pass for stream in self.streams.values())

    @property
    def order(self) -> Order:  # type: ignore[override]
        """From where the streams draw the orders of their passes; where ranks share them, all."""
        return self.streams[self._current].order

    def generators(self) -> list[torch.Generator]:
        """Return the generators that the orders of the streams depend on."""
        return [generator for stream in self.parts() for generator in stream.generators()]

    def first_batch(self) -> object:
        """Return what the model would see first, not shuffled, and leave no trace of it."""
        if self.way in ("zip", "cycle"):
            return {name: stream.first_batch() for name, stream in self.streams.items()}
        return next(iter(self.streams.values())).first_batch()

    def set_epoch(self, epoch: int) -> None:
        """Do nothing: each stream counts its own passes."""

    def close(self) -> None:
        """End the workers of all streams."""
        for stream in self.streams.values():
            stream.close()

    def replace(self, data: object, *, now: bool = False) -> None:
        """Read other data in some streams, given by name; see `Source.replace`."""
        if not isinstance(data, Mapping):
            raise DataError(
                f"{self.name} has the streams {', '.join(self.streams)}: replace one by its name, "
                f"run.train_data.replace({{'{self._current}': ...}})."
            )
        for name in data:
            if name not in self.streams:
                raise DataError(
                    f"{self.name} has no stream {name!r} to replace."
                    f"{nearest(str(name), self.streams)} There are: {', '.join(self.streams)}."
                )
        for name, other in data.items():
            self.streams[name].replace(other, now=now)
