"""Several streams of training data, mixed into one.

Each stream keeps its exact position. What the mixture adds to a checkpoint is where it stands
itself: a few numbers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import cast

import torch

from hookloop.data.mixing.ways import TRAIN, Weighted, make_way
from hookloop.data.mixing.weights import Mix, way_of
from hookloop.data.position.position import Groups, OpenPass, Order, Position, Size
from hookloop.data.ranks.place import Share
from hookloop.data.reading.exactness import SeedSamples
from hookloop.data.stream import Batches, NoteLength, Stream
from hookloop.errors import CheckpointError, DataError, caused_by, nearest
from hookloop.every import Counters

_log = logging.getLogger("hookloop")


class Mixture:
    """Streams that are read as one.

    Args:
        data: The streams by name.
        mix: How to mix them.
        name: ``train_data``.
        seed: From which streams are drawn; by default from torch's generator as it is at the first
            draw, which does not change it.
        seed_samples: As for `Stream`.

    Attributes:
        streams: The streams, each with its own position.
        way: How they are mixed.
        at: How far the current epoch is, in microbatches.

    >>> mixture = Mixture({"a": [1, 2, 3], "b": [10, 20]}, "zip", "train_data")
    >>> list(mixture.groups(1))
    [[{'a': 1, 'b': 10}], [{'a': 2, 'b': 20}]]
    """

    def __init__(
        self,
        data: Mapping[str, Batches],
        mix: Mix,
        name: str,
        *,
        seed: int | None = None,
        seed_samples: SeedSamples = True,
    ) -> None:
        if not data:
            raise DataError(f"{name} is an empty mapping: it has no stream.", argument=name)
        way_of(mix, list(map(str, data)))  # Before a stream is opened.
        self.name = name
        self.streams = {
            str(key): Stream(value, f"{name}['{key}']", seed_samples=seed_samples)
            for key, value in data.items()
        }
        for stream in self.streams.values():
            stream.set_epoch_per_pass()
        self.way = make_way(self.streams, mix, seed)
        self.at = Position()
        self.open_pass = OpenPass()
        self._seed = seed
        self._seed_samples = seed_samples
        self._is_over = False
        self._labels: list[str] = []
        self._shares: list[Share] = []

    # --- what it is -------------------------------------------------------------------------------

    @property
    def data(self) -> dict[str, Batches]:
        """The data of each stream."""
        return {name: stream.data for name, stream in self.streams.items()}

    @property
    def mix(self) -> Mix:
        """How the streams are mixed; weights can be set during the run, and last."""
        return self.way.mix

    @mix.setter
    def mix(self, weights: Mapping[str, float]) -> None:
        if not isinstance(self.way, Weighted) or not isinstance(weights, Mapping):
            raise DataError(
                f"{self.name} is mixed with mix={self.way.mix!r}, and {weights!r} cannot take its "
                "place: only weights can be replaced by other weights."
            )
        self.way.weigh(weights, self.name)

    @property
    def labels(self) -> Sequence[str]:
        """Of which stream each microbatch of the newest group is; of all if they are zipped."""
        return self._labels

    @property
    def position(self) -> int:
        """Microbatches taken from the current epoch; 0 if there is none."""
        return self.at.batches

    @property
    def passes(self) -> int:
        """None of its own: each stream counts its passes."""
        return self.at.passes

    @property
    def order(self) -> Order:
        """From where the streams draw the orders of their passes; ranks share one for all."""
        return self.streams[self.way.current].order

    @property
    def inexact(self) -> str | None:
        """Why a resume may not be exact, and of which streams, or None if it is."""
        found = [f"{one.name}: {one.inexact}" for one in self.parts() if one.inexact is not None]
        return "; ".join(found) or None

    @property
    def num_batches(self) -> int | None:
        """How many microbatches an epoch has: of the shortest or longest stream, or of all."""
        return self.way.length

    @property
    def batches_left(self) -> int | None:
        """How many microbatches the current pass still has, or None if that is unknown."""
        return 0 if self._is_over else self.way.left(self.at.batches)

    @property
    def is_one_pass(self) -> bool:
        """Whether one of the streams can be read only once."""
        return any(stream.is_one_pass for stream in self.streams.values())

    def parts(self) -> Sequence[Stream]:
        """Return the streams."""
        return list(self.streams.values())

    def generators(self) -> list[torch.Generator]:
        """Return the generators that the orders of the streams depend on."""
        return [generator for stream in self.parts() for generator in stream.generators()]

    def first_batch(self) -> object:
        """Return what the model would see first, not shuffled, and leave no trace of it."""
        if self.way.is_zipped:
            return {name: stream.first_batch() for name, stream in self.streams.items()}
        return next(iter(self.streams.values())).first_batch()

    # --- how it takes part in a run ---------------------------------------------------------------

    def follow(self, progress: Counters, note_length: NoteLength | None) -> None:
        """Take part in a run, whose progress weights may follow."""
        self.way.progress = progress
        if self.way.restarts and self.num_batches is None and note_length is not None:
            unknown = [one.name for one in self.parts() if one.num_batches is None]
            raise DataError(
                f"{' and '.join(unknown)} has no length, so an epoch of this mixture would never "
                "end: give epoch_iters=.",
                argument="train_data",
            )
        for stream in self.streams.values():
            if note_length is not None:
                stream.follow(progress, lambda _: note_length(self.num_batches))
            stream.continue_passes(note_length is None or isinstance(self.way, Weighted))

    def restart_workers(self) -> None:
        """Let the next pass of each stream start new workers; see `Stream.restart_workers`."""
        for stream in self.streams.values():
            stream.restart_workers()

    def set_epoch(self, epoch: int) -> None:
        """Do nothing: each stream counts its own passes."""

    def replace(self, data: object, *, now: bool = False) -> None:
        """Read other data in some streams, given by name; see `Stream.replace`."""
        if not isinstance(data, Mapping):
            raise DataError(
                f"{self.name} has the streams {', '.join(self.streams)}: replace one by its name, "
                f"run.train_data.replace({{'{self.way.current}': ...}})."
            )
        for name in data:
            if name not in self.streams:
                raise DataError(
                    f"{self.name} has no stream {name!r} to replace."
                    f"{nearest(str(name), self.streams)} There are: {', '.join(self.streams)}."
                )
        for name, other in data.items():
            self.streams[name].replace(other, now=now)

    # --- reading ----------------------------------------------------------------------------------

    def epoch(self, size: Size, iterations: int | None = None) -> Groups:
        """Return the groups of microbatches of one epoch; see `Stream.epoch`."""
        return self.open_pass.epoch(self.groups, size, iterations)

    def groups(self, size: Size) -> Groups:
        """Read an epoch in groups of ``size`` microbatches; the last group may be smaller."""
        while group := self._read(size if isinstance(size, int) else size()):
            yield group
        self.finish()

    def _read(self, size: int) -> list[object]:
        self._labels, self._shares = [], []
        group: list[object] = []
        while len(group) < size and not self._is_over:
            taken = self.way.take(self.at.batches)
            if taken is None:
                self._is_over = True  # Kept: the last group may be out when a checkpoint is made.
                break
            label, batch, shares = taken
            self._labels.append(label)
            group.append(batch)
            self._shares += shares
            self.at.batches += 1
        return group

    def label(self, groups: Groups, tell: Callable[[str], None]) -> Groups:
        """Return groups that tell of each microbatch from which stream it is."""
        return groups if self.way.is_zipped else self._labelled(groups, tell)

    def _labelled(self, groups: Groups, tell: Callable[[str], None]) -> Groups:
        try:
            for group in groups:
                tell(self._labels[0])
                yield group if len(group) == 1 else Labelled(group, self._labels, tell)
        finally:
            tell(TRAIN)

    def shares(self) -> list[Share] | None:
        """Return the shares of the last group; None if the data is not shared."""
        return self._shares or None

    def finish(self) -> None:
        """Leave the current epoch."""
        self.at.batches, self._is_over = 0, False
        self.way.leave()

    def close(self) -> None:
        """End the workers of all streams."""
        for stream in self.streams.values():
            stream.close()

    def __iter__(self) -> Iterator[object]:
        """Read a pass for a hook: it is not counted and does not disturb the current pass."""
        side = Mixture(
            self.data, self.mix, self.name, seed=self._seed, seed_samples=self._seed_samples
        )
        side.way.continue_as(self.way)
        try:
            for group in side.groups(1):
                yield group[0]
        finally:
            side.close()

    # --- its state --------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, object]:
        """Return the position of the mixture and that of each stream."""
        return {
            "position": self.at.batches,
            "is_over": self._is_over,
            **self.way.state_dict(),
            "streams": {name: stream.state_dict() for name, stream in self.streams.items()},
        }

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Go to a position that `state_dict` returned; a new stream starts at its beginning."""
        if "streams" not in state:
            raise CheckpointError(
                f"The checkpoint was made with one stream of training data, and {self.name} has "
                f"several ({', '.join(self.streams)}): go back to one, or begin a new run with "
                "load_from=."
            )
        streams = cast("Mapping[str, Mapping[str, object]]", state["streams"])
        self._warn_of_changes(str(state["way"]), list(streams))
        self.at.batches = cast("int", state["position"])
        self._is_over = cast("bool", state["is_over"])
        self.way.load_state_dict(state)
        for name, one in streams.items():
            if name in self.streams:
                self.streams[name].load_state_dict(one)

    def _warn_of_changes(self, way: str, names: Sequence[str]) -> None:
        changes = []
        if way != self.way.name:
            changes.append(f"it is mixed by {self.way.name}, and was by {way}")
        if set(names) != set(self.streams):
            changes.append(f"its streams are {', '.join(self.streams)}, and were {list(names)}")
        if changes:
            _log.warning(
                "%s has changed: %s. The run continues with what it has now, so it is not what an "
                "uninterrupted run would have read.",
                self.name,
                "; ".join(changes),
            )


class Labelled(list[object]):
    """The microbatches of an iteration; going over them tells from which stream each is.

    Attributes:
        labels: The stream of each.
    """

    def __init__(
        self, group: Sequence[object], labels: Sequence[str], tell: Callable[[str], None]
    ) -> None:
        super().__init__(group)
        self.labels = list(labels)
        self._tell = tell

    def __iter__(self) -> Iterator[object]:
        for index, label in enumerate(self.labels):
            self._tell(label)
            yield self[index]


TrainingStream = Stream | Mixture
"""What a run trains on."""


def open_train_data(
    data: Batches | Mapping[str, Batches],
    mix: Mix | None,
    *,
    seed: int | None = None,
    seed_samples: SeedSamples = True,
    limit: int | None = None,
) -> TrainingStream:
    """Open training data: one stream, or several that are mixed."""
    if isinstance(data, Mapping):
        with caused_by("train_data"):
            return Mixture(
                data,
                mix,  # type: ignore[arg-type]  # None is rejected there, with the choices.
                "train_data",
                seed=seed,
                seed_samples=seed_samples,
            )
    if mix is not None:
        raise DataError(
            f"mix={mix!r} mixes several streams, and train_data is one: give "
            "train_data={'a': ..., 'b': ...}, or leave out mix=.",
            argument="mix",
        )
    with caused_by("train_data"):
        return Stream(data, "train_data", seed_samples=seed_samples, limit=limit)
