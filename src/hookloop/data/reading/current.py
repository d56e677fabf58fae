"""The data that a stream reads now, what takes its place, and what a resume waits for.

A checkpoint holds the position in the data, and not the data: a resumed run begins with what the
script or the config gives. So a hook that has replaced the data does it again after a resume,
before the first batch is read, and the position goes over to that data.
"""

from __future__ import annotations

import copy
import inspect
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from typing import cast

from torch.utils.data import DataLoader, IterableDataset
from torch.utils.data.dataloader import _BaseDataLoaderIter

from hookloop.data.mixing.zipped import Zipped
from hookloop.data.position.measures import (
    Measures,
    batch_size_of,
    has_another_size,
    length_of,
    list_changes,
    measure,
    samples_of_batches,
    sizes_of,
)
from hookloop.data.position.monitor import OrderMonitor
from hookloop.data.position.position import Position
from hookloop.data.ranks.cut import Cut
from hookloop.data.reading.exactness import DEPTH, SeedSamples, find_generators
from hookloop.data.reading.loader import LoaderReader
from hookloop.data.reading.plain import PlainReader, StatefulReader
from hookloop.data.reading.reader import Reader
from hookloop.data.reading.samplers import Stateful
from hookloop.errors import DataError
from hookloop.objects.values import restore_state, to_state
from hookloop.parallel.world import World

_log = logging.getLogger("hookloop")

ADVICE = (
    "The hook that did it has to do it again after a resume, for example at before_train_epoch: "
    "'if run.progress.epoch >= 3 and not self.is_done'."
)


class CurrentData:
    """The data that is read now.

    Args:
        data: A DataLoader, a list, any iterable.
        name: Its name in messages.
        seed_samples: Whether the randomness of samples depends on their position.

    Attributes:
        reader: Starts passes over it.
        cut: Takes this rank's part of each batch; None if the data is not shared.
        is_shard: Whether the data is this rank's alone.
        monitor: Watches the order in which it holds its samples.
        next: The data from the next pass on, if a hook has given other data.
        expects_next: Whether a resumed run had other data for the next pass.
        awaited: The state of data that a hook has to bring first.
        is_replaced: Whether a hook has given this data.
    """

    def __init__(
        self, data: Iterable[object], name: str, *, seed_samples: SeedSamples = True
    ) -> None:
        check_batches(data, name)
        self.data = data
        self.name = name
        self._seed_samples = seed_samples
        self.reader: Reader = make_reader(data, seed_samples=seed_samples)
        self.cut: Cut | None = None
        self.is_shard = False
        self.monitor = OrderMonitor(data, name)
        self.next: Iterable[object] | None = None
        self.expects_next = False
        self.awaited: Mapping[str, object] | None = None
        self.is_replaced = False

    def share_among(
        self, rank: int, size: int, *, logical: int = 0, is_training: bool = True
    ) -> None:
        """Read one rank's part from now on, or those of its logical ranks."""
        shard = take_shard(self.data, rank, size, self.name)
        if shard is not None and logical:
            raise DataError(
                f"{self.name} has a method shard(), by which each process has data of its own: "
                "that depends on how many there are, so it cannot be cut into logical ranks.",
                argument=self.name.partition("[")[0],
            )
        if logical and self._seed_samples is not True and isinstance(self.reader, LoaderReader):
            raise DataError(
                f"seed_samples={self._seed_samples!r} lets random numbers of {self.name} depend on "
                "the number of processes, so it does not work with parallel: {logical: ...}. "
                "Leave it out.",
                argument="seed_samples",
            )
        if size > 1:
            check_shareable(self.data, self.name, size, is_training=is_training and shard is None)
        if shard is not None and shard is not self.data:
            self.data = shard
            self.reader = make_reader(shard, seed_samples=self._seed_samples)
        self.is_shard = shard is not None
        self.cut = Cut.of(World(rank, size, logical=logical), self.name)
        self.reader.share(self.cut, is_shard=self.is_shard)

    def measures(self, limit: int | None) -> Measures:
        """Return what the position in it depends on."""
        measures = measure(self.data) | {"limit": limit}
        if self.is_shard and self.cut is not None:
            measures["processes"] = self.cut.size
        return measures

    def samples_read(self, at: Position) -> int | None:
        """Count the samples of a pass that were read; None if only batches count."""
        if not self.reader.counts_samples:
            return None
        size, length = sizes_of(self.data)
        return min(at.samples_before + at.batches * size, length)

    def compare(self, state: Mapping[str, object], at: Position, limit: int | None) -> None:
        """Warn where the data is not what it was at a checkpoint.

        Where only the size of its batches is another, the position continues in samples.
        """
        before = cast("Mapping[str, object]", state.get("measures") or {})
        measures = self.measures(limit)
        samples = cast("int | None", state.get("samples", samples_of_batches(state, before)))
        is_recounted = self.reader.counts_samples and has_another_size(before, measures)
        if is_recounted and samples is not None and at.batches:
            at.recount(samples)
        if changes := list_changes(before, measures):
            what = f"{self.name} has changed: {'; '.join(changes)}. The run continues {at}"
            _log.warning("%s, so it is not what an uninterrupted run would have read.", what)
        orders = cast("Mapping[str, list[object]]", state.get("orders") or {})
        self.monitor.warn_of_changes(orders)

    def set_epoch(self, epoch: int) -> None:
        """Call ``set_epoch`` of the data or its sampler, so that it shuffles in another order."""
        batch_sampler = getattr(self.data, "batch_sampler", None)
        inner = getattr(batch_sampler, "sampler", None)
        for holder in (self.data, getattr(self.data, "sampler", None), batch_sampler, inner):
            setter = getattr(holder, "set_epoch", None)
            if callable(setter):
                setter(epoch)
                return

    def bookmark(self) -> Callable[[], None]:
        """Return what puts samplers and generators in the data back to where they are now."""
        samplers = self.reader.state(0, "samplers")
        generators = {id(one): one for _, one in find_generators(self.data, DEPTH + 1)}
        drawn = [(one, to_state(one)) for one in generators.values()]
        inner = self.data.bookmark() if isinstance(self.data, Zipped) else None

        def put_back() -> None:
            if inner is not None:
                inner()
            self.reader.load(samplers)
            for generator, before in drawn:
                restore_state(generator, before)

        return put_back

    # --- what takes its place ---------------------------------------------------------------------

    def switch(self, data: Iterable[object]) -> None:
        """Read other data, shared in the same way."""
        other = CurrentData(data, self.name, seed_samples=self._seed_samples)
        if self.cut is not None:
            other.share_among(self.cut.rank, self.cut.size, logical=self.cut.logical)
            self.cut, self.is_shard = other.cut, other.is_shard
        self.data, self.reader, self.monitor = other.data, other.reader, other.monitor
        self.is_replaced = True

    def switch_later(self, data: Iterable[object]) -> None:
        """Read other data from the next pass on."""
        check_batches(data, self.name)  # Now, so that it is rejected in the hook's own line.
        self.next = data

    def take_next(self) -> Iterable[object]:
        """Return the data of the next pass, which begins now; reject a resume that has none."""
        other, self.next = self.next, None
        if other is None:
            raise DataError(
                f"Before the checkpoint, {self.name} was replaced for the time after the pass that "
                f"has ended now, and has not been replaced since. {ADVICE}"
            )
        return other

    # --- what a resume waits for ------------------------------------------------------------------

    def check_is_there(self) -> None:
        """Reject a resume that would read other data than the run has read."""
        if self.awaited is not None:
            raise DataError(
                f"{self.name} was replaced by a hook before the checkpoint, and has not been "
                f"replaced since: the run would continue with other data. {ADVICE}"
            )

    def awaits(self, state: Mapping[str, object]) -> bool:
        """Return whether a state is of data that a hook has to bring first; keep it until then."""
        self.expects_next = bool(state.get("next_replaced"))
        if not state.get("replaced") or self.is_replaced:
            return False
        self.awaited = state
        return True

    def state_dict(self) -> dict[str, object]:
        """Return what was replaced, for the next run to expect."""
        waits = self.next is not None or self.expects_next
        state = {"replaced": self.is_replaced, "next_replaced": waits}
        return {name: True for name, flag in state.items() if flag}


def make_reader(data: Iterable[object], *, seed_samples: SeedSamples) -> Reader:
    """Choose how to read some data."""
    if isinstance(data, Stateful):
        return StatefulReader(data)
    if isinstance(data, DataLoader) and not isinstance(data.dataset, IterableDataset):
        return LoaderReader(data, seed_samples=seed_samples)
    return PlainReader(data)


def check_batches(data: object, name: str) -> None:
    """Reject what is not an iterable of batches, or has none."""
    if isinstance(data, str | bytes | Mapping) or not isinstance(data, Iterable):
        raise DataError(f"{name} is {type(data).__name__}: it must be an iterable of batches.")
    if length_of(data) == 0:
        raise DataError(f"{name} is empty: it has no batch.{_why_empty(data)}")


def nothing_read(data: object, name: str, passes: int = 1) -> DataError:
    """Return the error for data that gave no batch.

    Args:
        data: The data.
        name: Its name in messages.
        passes: How many passes over it have begun, this one included.
    """
    if not isinstance(data, Iterator):
        return DataError(f"{name} is empty: it gave no batch.", argument=name.partition("[")[0])
    kind = type(data).__name__
    when = "by the pass before" if passes > 1 else "before this run, or was empty"
    instead = (
        "Give the DataLoader itself, without iter()."
        if isinstance(data, _BaseDataLoaderIter)
        else "Give a DataLoader, a list of the batches, or an object whose __iter__ begins again."
    )
    return DataError(
        f"{name} gave no batch: it is a {kind}, which can be read only once, and was used up "
        f"{when}. {instead}",
        argument=name.partition("[")[0],
    )


def _why_empty(data: object) -> str:
    dataset = getattr(data, "dataset", None)
    if getattr(data, "drop_last", False) and isinstance(dataset, Sized) and len(dataset):
        return (
            f" Its {len(dataset)} samples are fewer than one batch of "
            f"{getattr(data, 'batch_size', '?')}, and drop_last=True drops them."
        )
    return ""


# --- data that divides itself among ranks, and data that cannot be divided -----------------------

# Most data is read by every rank in the same order, and each takes its part of every batch. Data
# with a method ``shard(rank, size)`` is asked for the part of one rank instead.


def take_shard(data: Iterable[object], rank: int, size: int, name: str) -> Iterable[object] | None:
    """Return the data of one rank if the data, or its data set, has a method ``shard``."""
    dataset = getattr(data, "dataset", None)
    if isinstance(data, DataLoader) and not isinstance(dataset, IterableDataset):
        return None  # Each rank loads only its own samples anyway.
    for holder in (data, dataset):
        shard = getattr(holder, "shard", None)
        if callable(shard):
            break
    else:
        return None
    part = _call(shard, rank, size)
    if part is None:  # It has changed itself.
        return data
    if not isinstance(part, Iterable if holder is data else IterableDataset):
        raise DataError(
            f"{name}: shard({rank}, {size}) of {type(holder).__name__} returned "
            f"{type(part).__name__}: return data of the same kind, or None if it changes itself.",
            argument=name.partition("[")[0],
        )
    if holder is data:
        return part
    copied = copy.copy(data)
    # Past DataLoader.__setattr__, which forbids this.
    copied.__dict__["dataset"] = part
    return copied


def _call(shard: Callable[..., object], rank: int, size: int) -> object:
    try:
        names = inspect.signature(shard).parameters
    except (TypeError, ValueError):  # Compiled functions may have no signature.
        names = {}  # type: ignore[assignment]
    # That of Hugging Face's data sets has other names, in another order.
    if {"num_shards", "index"} <= set(names):
        return shard(num_shards=size, index=rank)
    return shard(rank, size)


def check_shareable(data: object, name: str, size: int, *, is_training: bool) -> None:
    """Reject data that is already divided, or whose batches are too small to be divided."""
    argument = name.partition("[")[0]
    for sampler in _samplers(data):
        if _is_distributed(sampler):
            raise DataError(
                f"{name} has a {type(sampler).__name__}, which divides the data among processes. "
                "hookloop divides each global batch itself: take a plain sampler, or "
                "shuffle=True.",
                argument=argument,
            )
    samples = batch_size_of(data)
    if is_training and isinstance(samples, int) and samples < size:
        raise DataError(
            f"{name} has batches of {samples} samples for {size} processes: batch_size counts the "
            f"samples of all processes together. Make it at least {size}, or start fewer "
            "processes.",
            argument=argument,
        )


def _samplers(data: object) -> Iterator[object]:
    """Yield the samplers of a loader, and those that they are built on."""
    waiting, seen = [data], set()
    while waiting:
        holder = waiting.pop()
        for attribute in ("sampler", "batch_sampler"):
            found = getattr(holder, attribute, None)
            if found is not None and id(found) not in seen:
                seen.add(id(found))
                waiting.append(found)
                yield found


def _is_distributed(sampler: object) -> bool:
    if any("DistributedSampler" in kind.__name__ for kind in type(sampler).__mro__):
        return True
    counts = [getattr(sampler, name, None) for name in ("num_replicas", "world_size")]
    return hasattr(sampler, "rank") and any(isinstance(n, int) and n > 1 for n in counts)
