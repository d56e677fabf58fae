"""A source of batches: any iterable, read epoch by epoch, in groups of microbatches."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from itertools import islice, takewhile
from typing import cast

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from hookloop.data.cut import Cut, Share
from hookloop.data.indices import PassStart
from hookloop.data.measures import (
    Measures,
    has_another_size,
    length_of,
    list_changes,
    measure,
    samples_of_batches,
    sizes_of,
)
from hookloop.data.randomness import Randomness
from hookloop.data.reader import make_reader
from hookloop.data.sample_order import OrderMonitor
from hookloop.data.samplers import State
from hookloop.data.shards import check_shareable, take_shard
from hookloop.errors import DataError, caused_by

Batches = Iterable[object]

_log = logging.getLogger("hookloop")


class Source:
    """One iterable of batches, its name in messages, and the position in it.

    Args:
        data: A DataLoader, a list, any iterable. One that can be read only once (a generator) ends
            the training when it ends.
        name: ``train_data``, ``val_data['clean']``, ...
        seed_samples: Whether the randomness of samples loaded in workers depends on their position.
    """

    def __init__(self, data: Batches, name: str, *, seed_samples: bool = True) -> None:
        if isinstance(data, str | bytes | Mapping) or not isinstance(data, Iterable):
            raise DataError(f"{name} is {type(data).__name__}: it must be an iterable of batches.")
        self.data = data
        self.name = name
        self.position = 0
        """Batches taken from the current pass; 0 if there is none."""
        self._samples_before = 0  # Samples that it had given when the batch size changed.
        self.sets_epoch_per_pass = False
        """Whether each pass calls a sampler's ``set_epoch``, for a training without epochs."""
        self.on_replaced: Callable[[], None] = lambda: None
        """Called when the data was replaced, and its generators with it."""
        self._side_passes: list[Source] = []
        self._passes = 0
        self._seed_samples = seed_samples
        self.order: Randomness | None = None
        """From where the order of the next pass is drawn; None for the process's generators."""
        self._cut: Cut | None = None
        self._is_shard = False
        self._shares: list[Share] = []
        self._reader = make_reader(data, seed_samples=seed_samples)
        self._monitor = OrderMonitor(data, name)
        self._began: Randomness | None = None
        self._groups: Iterator[list[object]] | None = None
        if self.num_batches == 0:
            raise DataError(f"{name} is empty: it has no batch.{_why_empty(data)}")

    @property
    def inexact(self) -> str | None:
        """Why a resume in the middle of this data may not be exact, or None if it is."""
        return self._reader.inexact

    @property
    def num_batches(self) -> int | None:
        """How many batches an epoch has, or None if that is unknown without reading them."""
        return length_of(self.data)

    @property
    def is_one_pass(self) -> bool:
        """Whether the data can be read only once."""
        return isinstance(self.data, Iterator)

    def generators(self) -> list[torch.Generator]:
        """Return the generators that the order depends on, except for the process's own."""
        return self._reader.generators()

    def epoch(self, size: int, iterations: int | None = None) -> Iterator[list[object]]:
        """Return the groups of microbatches of one epoch.

        With a number of iterations, the current pass continues from one epoch to the next, and the
        data is read again when it ends.
        """
        if iterations is None:
            return self.groups(size)
        return takewhile(bool, (self._next_group(size) for _ in range(iterations)))

    def _next_group(self, size: int) -> list[object]:
        for _ in range(2):  # The first try may find the end of a pass; the second starts a new one.
            self._groups = self._groups or self.groups(size)
            group = next(self._groups, None)
            if group is not None:
                return group
            self._groups = None
        return []

    def groups(self, size: int) -> Iterator[list[object]]:
        """Read a pass in groups of ``size`` microbatches; the last group may be smaller.

        If a checkpoint was made in the middle of the pass, it continues there.
        """
        is_inside = self.position or self._samples_before
        batches = self._continue() if is_inside else self._begin()
        if self._cut is not None:
            yield from self._shared_groups(batches, size, self._cut)
            return
        # The position is counted before each yield: a checkpoint is made while the group is out.
        if size == 1:  # The common case, at half the cost.
            for batch in batches:
                self.position += 1
                yield [batch]
        while group := list(islice(batches, size)):
            self.position += len(group)
            yield group
        self.finish()

    def _shared_groups(
        self, batches: Iterator[object], size: int, cut: Cut
    ) -> Iterator[list[object]]:
        while group := list(islice(batches, size)):
            self.position += len(group)
            self._shares = [cut.shares.popleft() for _ in group]
            yield group
        self.finish()

    def finish(self) -> None:
        """Leave the current pass: the next one starts at the first batch."""
        self.position = self._samples_before = 0
        self._began = None

    def close(self) -> None:
        """End the workers; a later pass starts them again, from the same position."""
        for source in self._side_passes:
            source.close()
        # An iterator whose workers are gone cannot continue, so it is made again.
        if self._reader.close():
            self._groups = None

    def replace(self, data: Batches) -> None:
        """Read other data from the next pass on, or at once in a training without epochs."""
        other = Source(data, self.name, seed_samples=self._seed_samples)
        if self._cut is not None:
            other.share_among(self._cut.rank, self._cut.size, self.order)
            self._cut, self._is_shard = other._cut, other._is_shard
        self.data, self._reader, self._passes = other.data, other._reader, 0
        self._monitor = other._order
        if self._groups is not None:
            self._groups = None
            self.finish()
        self.on_replaced()

    def _begin(self) -> Iterator[object]:
        """Start a pass at its first batch."""
        if self.order is None:
            return self._begin_now()
        own = Randomness.now(gpus=False)
        self.order.restore()
        try:
            batches = self._begin_now()
            self.order = Randomness.now(gpus=False)
        finally:
            own.restore()
        return batches

    def _begin_now(self) -> Iterator[object]:
        generators = self._reader.generators()
        # The states of GPUs are those of one rank.
        self._began = began = Randomness.now(generators, gpus=self.order is None)
        if self.sets_epoch_per_pass:
            self.set_epoch(self._passes)
        if self._passes:
            self._monitor.warn_if_reordered()
        self._passes += 1
        key = began.key(self._passes)
        start = PassStart(0, 0, key, self._passes, lambda: began.restore(generators))
        return self._reader.begin(start)

    def _continue(self) -> Iterator[object]:
        """Continue in the middle of a pass, in the order that the pass had."""
        generators = self._reader.generators()
        now = Randomness.now(generators)
        if self.sets_epoch_per_pass:
            self.set_epoch(self._passes - 1)
        # The order is drawn again from the generators as they were when the pass began. Then they
        # continue from the checkpoint, so that the model draws what it would have drawn.
        began = self._began or now
        key = began.key(self._passes)
        began.restore(generators)
        at = self.position, self._samples_before
        start = PassStart(*at, key, self._passes, lambda: began.restore(generators))
        batches = self._reader.begin(start)
        now.restore(generators)
        return batches

    def state_dict(self) -> dict[str, object]:
        """Return the position in the data; the size of the state does not grow with it."""
        self._monitor.warn_if_reordered()
        stream = self._reader.stream_state() if self.position else None
        return {
            **self.reading_state(),
            **({} if stream is None else {"stream": stream}),
            "position": self.position,
            "samples": self._samples_read(),
            "samples_before": self._samples_before,
            "began": self._began.state if self._began is not None else None,
            "loader": self._reader.state_dict(self.position),
            "measures": self._measures(),
            "orders": self._monitor.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Go to a position that `state_dict` returned; warn if the data has changed."""
        self.load_reading_state(state)
        self.position = cast("int", state["position"])
        self._samples_before = cast("int", state.get("samples_before", 0))
        measures = cast("Mapping[str, object]", state.get("measures") or {})
        samples = cast("int | None", state.get("samples", samples_of_batches(state, measures)))
        is_recounted = self._reader.counts_samples and has_another_size(measures, self._measures())
        if is_recounted and samples is not None and self.position:
            self.position, self._samples_before = 0, samples
        self._warn_of_changes(measures)
        self._monitor.warn_of_changes(cast("Mapping[str, list[object]]", state.get("orders") or {}))
        began = cast("dict[str, object] | None", state["began"])
        self._began = Randomness(began) if began is not None else None
        if loader := cast("dict[str, object]", state["loader"]):
            self._reader.load_state_dict(loader)
        if stream := cast("dict[str, object] | None", state.get("stream")):
            self._reader.load_stream_state(stream)

    def _measures(self) -> Measures:
        measures = measure(self.data)
        if self._is_shard and self._cut is not None:
            measures["processes"] = self._cut.size
        return measures

    def _warn_of_changes(self, before: Mapping[str, object]) -> None:
        changes = list_changes(before, self._measures())
        if not changes:
            return
        where = f"at batch {self.position} of it"
        if self._samples_before and not self.position:
            where = f"after {self._samples_before} samples of the pass and reads the others once"
        what = f"{self.name} has changed: {'; '.join(changes)}. The run continues {where}"
        _log.warning("%s, so it is not what an uninterrupted run would have read.", what)

    def _samples_read(self) -> int | None:
        """Count the samples of the current pass that were read; None if only batches count."""
        if not self._reader.counts_samples:
            return None
        size, length = sizes_of(self.data)
        return min(self._samples_before + self.position * size, length)

    @property
    def batches_left(self) -> int | None:
        """How many batches the current pass still has, or None if that is unknown."""
        if not self._samples_before:
            total = self.num_batches
            return None if total is None else max(0, total - self.position)
        size, length = sizes_of(self.data)
        left = length - (self._samples_read() or 0)
        return left // size if cast("DataLoader[object]", self.data).drop_last else -(-left // size)

    def reading_state(self) -> dict[str, object]:
        """Return what the next whole pass depends on, except for the process's generators."""
        generators = [generator.get_state() for generator in self._reader.generators()]
        state: dict[str, object] = {"passes": self._passes, "generators": generators}
        if self.order is not None:
            state["order"] = self.order.state
        return state

    def load_reading_state(self, state: Mapping[str, object]) -> None:
        """Take back what `reading_state` returned."""
        self._passes = cast("int", state["passes"])
        if "order" in state:
            order = Randomness(cast("dict[str, object]", state["order"]))
            if self._cut is None:
                self.share_among(0, 1, order)
            self.order = order
        self._load_generators(state)

    def _load_generators(self, state: Mapping[str, object]) -> None:
        saved = cast("list[Tensor]", state["generators"])
        for generator, generator_state in zip(self._reader.generators(), saved, strict=False):
            generator.set_state(generator_state)

    def share_among(
        self, rank: int, size: int, order: Randomness | None = None, *, is_training: bool = True
    ) -> None:
        """Read one rank's part of the data from now on; call it before anything is read.

        Args:
            rank: The number of the rank, from 0.
            size: How many ranks there are.
            order: From where all ranks draw the order of passes; by default from the generators as
                they are now, which must then be equal on all ranks.
            is_training: Whether each rank needs at least one sample of a full batch.
        """
        shard = take_shard(self.data, rank, size, self.name)
        if size > 1:
            check_shareable(self.data, self.name, size, is_training=is_training and shard is None)
        if shard is not None and shard is not self.data:
            self.data = shard
            self._reader = make_reader(shard, seed_samples=self._seed_samples)
        self._is_shard = shard is not None
        self._cut = Cut(rank, size, self.name)
        self._reader.share(self._cut, is_shard=self._is_shard)
        self.order = order or self.order or Randomness.now(gpus=False)

    def shares(self) -> list[Share] | None:
        """Return the shares of the last group, or of the last batch of an evaluation.

        None if the data is not shared.
        """
        return None if self._cut is None else self._shares

    def order_state(self) -> dict[str, object]:
        """Return all that orders are drawn from, so that the other ranks can draw the same."""
        order = self.order or Randomness.now(gpus=False)
        generators = [generator.get_state() for generator in self._reader.generators()]
        samplers = self._reader.sampler_states()
        return {"order": order.state, "generators": generators, "samplers": samplers}

    def load_order_state(self, state: Mapping[str, object]) -> None:
        """Take over what `order_state` returned on another rank."""
        self.order = Randomness(cast("dict[str, object]", state["order"]))
        self._load_generators(state)
        self._reader.load_sampler_states(cast("State", state["samplers"]))

    def read(self) -> Iterator[object]:
        """Read a pass batch by batch, for an evaluation."""
        batches = self._begin()
        return batches if self._cut is None else self._read_shared(batches, self._cut)

    def _read_shared(self, batches: Iterator[object], cut: Cut) -> Iterator[object]:
        for batch in batches:
            self._shares = [cut.shares.popleft()]
            yield batch

    def __iter__(self) -> Iterator[object]:
        """Read a pass for a hook: it is not counted and does not disturb the current pass."""
        side_pass = Source(self.data, self.name, seed_samples=self._seed_samples)
        self._side_passes.append(side_pass)
        try:
            yield from side_pass.read()
        finally:
            side_pass.close()
            self._side_passes.remove(side_pass)

    def set_epoch(self, epoch: int) -> None:
        """Call ``set_epoch`` of the data or its sampler, so that it shuffles in another order."""
        batch_sampler = getattr(self.data, "batch_sampler", None)
        for holder in (
            self.data,
            getattr(self.data, "sampler", None),
            batch_sampler,
            getattr(batch_sampler, "sampler", None),
        ):
            setter = getattr(holder, "set_epoch", None)
            if callable(setter):
                setter(epoch)
                return


def _why_empty(data: object) -> str:
    dataset = getattr(data, "dataset", None)
    if getattr(data, "drop_last", False) and isinstance(dataset, Sized) and len(dataset):
        return (
            f" Its {len(dataset)} samples are fewer than one batch of "
            f"{getattr(data, 'batch_size', '?')}, and drop_last=True drops them."
        )
    return ""


def open_streams(
    data: Batches | Mapping[str, Batches] | None, name: str, *, seed_samples: bool = True
) -> dict[str, Source]:
    """Make sources of evaluation data: one stream without a name, or several with names.

    >>> list(open_streams({"clean": [1], "noisy": [2]}, "val_data"))
    ['clean', 'noisy']
    >>> list(open_streams([1, 2], "val_data"))
    ['']
    """
    if data is None:
        return {}
    if isinstance(data, Mapping):
        streams = {str(key): (value, f"{name}['{key}']") for key, value in data.items()}
    else:
        streams = {"": (data, name)}
    with caused_by(name):
        return {key: Source(*stream, seed_samples=seed_samples) for key, stream in streams.items()}
