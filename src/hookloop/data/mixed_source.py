"""Several streams of training data, mixed into one.

Each stream is a `Source` of its own, which keeps its exact position. What the mixture adds to a
checkpoint is where it stands itself: a few numbers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import cast

import torch
from torch import Tensor

from hookloop.data.batch import counted_part
from hookloop.data.exactness import SeedSamples
from hookloop.data.mixture import Mix, Weights, draw
from hookloop.data.seeding import derive_key
from hookloop.data.share import Share, zip_shares
from hookloop.data.shared_data import nothing_read
from hookloop.data.source import Batches, Groups, Size, Source
from hookloop.data.train_streams import TrainStreams
from hookloop.errors import CheckpointError, DataError, caused_by
from hookloop.every import Counters

_log = logging.getLogger("hookloop")

TRAIN = "train"
"""The name of what is not a single stream."""

LARGEST_KEY = 1 << 53
"""Keys are below this, so that a checkpoint holds them in any format."""


class MixedSource(TrainStreams):
    """Streams that are read as one.

    Args:
        data: The streams by name.
        mix: How to mix them.
        name: ``train_data``.
        seed: From which streams are drawn; by default from torch's generator as it is at the first
            draw, which does not change it.
        seed_samples: As for `Source`.

    Attributes:
        streams: The streams, each with its own position.

    >>> source = MixedSource({"a": [1, 2, 3], "b": [10, 20]}, "zip", "train_data")
    >>> list(source.groups(1))
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
        super().__init__(data, mix, name, seed_samples)
        self._mix = mix
        self._weights: Weights | None = None
        if self.way == "weights":
            self._weights = Weights(mix, list(self.streams))  # type: ignore[arg-type]
        self._set: dict[str, float] | None = None  # Weights that a hook has set.
        self._seed = seed
        self._key: int | None = None
        self._drawn = 0
        self._labels: list[str] = []
        self._shares: list[Share] = []
        self._takes: Callable[[], tuple[str, object] | None] = {
            "zip": self._take_zipped,
            "cycle": self._take_cycled,
            "in order": self._take_in_order,
            "weights": self._take_drawn,
        }[self.way]

    @property
    def mix(self) -> Mix:
        """How the streams are mixed; weights can be set during the run, and last."""
        return self._mix if self._set is None else self._set

    @mix.setter
    def mix(self, weights: Mapping[str, float]) -> None:
        if self.way != "weights" or not isinstance(weights, Mapping):
            raise DataError(
                f"{self.name} is mixed with mix={self._mix!r}, and {weights!r} cannot take its "
                "place: only weights can be replaced by other weights."
            )
        self._weights = Weights(weights, list(self.streams))
        for name, weight in weights.items():
            if isinstance(weight, Mapping):
                raise DataError(f"{self.name}.mix: the weight of '{name}' has to be a number.")
        self._set = {name: float(weight) for name, weight in weights.items()}

    def _pass(self, size: Size) -> Iterator[list[object]]:
        while group := self._read(size if isinstance(size, int) else size()):
            yield group
        self.finish()

    def _read(self, size: int) -> list[object]:
        """Read a group of microbatches; the last one of a pass may be smaller."""
        self._labels, self._shares = [], []
        group: list[object] = []
        while len(group) < size and not self._is_over:
            taken = self._takes()
            if taken is None:
                self._is_over = True  # Kept: the last group may be out when a checkpoint is made.
                break
            self._labels.append(taken[0])
            group.append(taken[1])
            self._shares += self._shares_of(*taken)
            self.at.batches += 1
        return group

    def _take_zipped(self) -> tuple[str, object] | None:
        # Looked up before anything is read: a batch that is read and not used would have drawn
        # random numbers.
        if any(stream.batches_left == 0 for stream in self.streams.values()):
            return None
        return self._take_each(restarts=False)

    def _take_cycled(self) -> tuple[str, object] | None:
        return None if self.batches_left == 0 else self._take_each(restarts=True)

    def _take_each(self, *, restarts: bool) -> tuple[str, object] | None:
        batch: dict[str, object] = {}
        for name, stream in self.streams.items():
            taken = self._next_of(stream, restarts=restarts)
            if not taken:
                return None
            batch[name] = taken[0]
        return TRAIN, batch

    def _take_in_order(self) -> tuple[str, object] | None:
        names = list(self.streams)
        for name in names[names.index(self._current) :]:
            self._current = name
            if taken := self._next_of(self.streams[name], restarts=False):
                return name, taken[0]
        return None

    def _take_drawn(self) -> tuple[str, object] | None:
        if self.batches_left == 0:
            return None
        weights = cast("Weights", self._weights).at(cast("Counters", self._progress))
        name = draw(self._find_key(), self._drawn, weights)
        taken = self._next_of(self.streams[name], restarts=True)
        self._drawn += 1
        return (name, taken[0]) if taken else None

    def _next_of(self, stream: Source, *, restarts: bool) -> list[object]:
        was_inside = stream.at.batches > 0
        taken = stream.next_group(1, restarts=restarts)
        if not taken and (restarts or not was_inside) and not stream.is_one_pass:
            raise nothing_read(stream.data, stream.name, stream.passes)
        return taken

    def _shares_of(self, name: str, batch: object) -> list[Share]:
        """Return the share of a microbatch that was just read; nothing in a single process."""
        if self.way not in ("zip", "cycle"):
            return self.streams[name].shares() or []
        shares = {own: one[0] for own, part in self.streams.items() if (one := part.shares())}
        counted = counted_part(cast("dict[str, object]", batch)) if shares else ""
        return [zip_shares(shares, counted)] if shares else []

    def _find_key(self) -> int:
        """Return the key of all draws, which is the same on all ranks."""
        if self._key is None and self._seed is not None:
            self._key = self._seed % LARGEST_KEY
        if self._key is None:
            order = self.order.now
            state = torch.get_rng_state() if order is None else cast("Tensor", order.state["torch"])
            self._key = derive_key([state], 0) % LARGEST_KEY
        return self._key

    def label(self, groups: Groups, tell: Callable[[str], None]) -> Groups:
        """Return groups that tell of each microbatch from which stream it is."""
        if self.way in ("zip", "cycle"):
            return groups
        return self._labelled(groups, tell)

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
        """Leave the current pass; with weights, the streams stay where they are."""
        self.at.batches, self._is_over = 0, False
        self._current = next(iter(self.streams))
        if self.way != "weights":
            for stream in self.streams.values():
                stream.leave()

    def read(self) -> Iterator[object]:
        """Read a pass microbatch by microbatch, beside the current one."""
        return iter(self)

    def __iter__(self) -> Iterator[object]:
        """Read a pass for a hook: it is not counted and does not disturb the current pass."""
        side = MixedSource(
            self.data, self.mix, self.name, seed=self._seed, seed_samples=self._seed_samples
        )
        side._progress, side._key, side._drawn = self._progress, self._key, self._drawn
        try:
            for group in side.groups(1):
                yield group[0]
        finally:
            side.close()

    def state_dict(self) -> dict[str, object]:
        """Return the position of the mixture and that of each stream."""
        return {
            "way": self.way,
            "position": self.at.batches,
            "is_over": self._is_over,
            "current": self._current,
            "key": self._key,
            "drawn": self._drawn,
            "weights": self._set,
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
        self._warn_of_changes_in(str(state["way"]), list(streams))
        self.at.batches = cast("int", state["position"])
        self._is_over = cast("bool", state["is_over"])
        if state["current"] in self.streams:
            self._current = str(state["current"])
        self._key = cast("int | None", state["key"])
        self._drawn = cast("int", state["drawn"])
        weights = cast("Mapping[str, float] | None", state["weights"])
        if weights is not None and self.way == "weights" and set(weights) == set(self.streams):
            self.mix = weights
        for name, one in streams.items():
            if name in self.streams:
                self.streams[name].load_state_dict(one)

    def _warn_of_changes_in(self, way: str, names: Sequence[str]) -> None:
        changes = []
        if way != self.way:
            changes.append(f"it is mixed by {self.way}, and was by {way}")
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
    """The microbatches of an iteration; going over them tells from which stream each is."""

    def __init__(
        self, group: Sequence[object], labels: Sequence[str], tell: Callable[[str], None]
    ) -> None:
        super().__init__(group)
        self._labels, self._tell = list(labels), tell

    def __iter__(self) -> Iterator[object]:
        for index, label in enumerate(self._labels):
            self._tell(label)
            yield self[index]


def open_train_data(
    data: Batches | Mapping[str, Batches],
    mix: Mix | None,
    *,
    seed: int | None = None,
    seed_samples: SeedSamples = True,
) -> Source:
    """Make a source of training data: of one stream, or of several that are mixed."""
    if isinstance(data, Mapping):
        with caused_by("train_data"):
            return MixedSource(
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
        return Source(data, "train_data", seed_samples=seed_samples)
