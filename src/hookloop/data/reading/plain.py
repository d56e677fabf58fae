"""Start a pass over any data: the batches before the position are read and dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain, islice
from typing import cast

import torch
from torch.utils.data import DataLoader

from hookloop.data.position.indices import PassStart
from hookloop.data.random.apart import RandomStream
from hookloop.data.ranks.cut import Cut
from hookloop.data.reading.exactness import reason_inexact
from hookloop.data.reading.loader_changes import LoaderChanges, shielded, shielded_copy
from hookloop.data.reading.none_samples import naming
from hookloop.data.reading.reader import Reader
from hookloop.data.reading.repeated import watch_for_repeats
from hookloop.data.reading.samplers import SamplerStates, Stateful, samplers_of
from hookloop.data.reading.workers import Workers


class PlainReader(Reader):
    """Reads any iterable; batches to skip are read and dropped."""

    def __init__(self, data: Iterable[object]) -> None:
        self._data = data
        if isinstance(data, DataLoader) and not isinstance(data, Stateful):
            self._changes = LoaderChanges(data)
            self._data = shielded_copy(data)
        self._workers = Workers()
        self._shared: SharedPasses | None = None
        self._samplers = SamplerStates([])
        self.inexact = reason_inexact(data)

    def begin(self, start: PassStart) -> Iterator[object]:
        """Start a pass; read and drop the batches to skip."""
        if self._shared is not None:
            return self._shared.begin(partial(self._iterate, start), start)
        batches = self._iterate(start)
        next(islice(batches, start.skip, start.skip), None)
        return batches

    def _iterate(self, start: PassStart) -> Iterator[object]:
        if self._changes is None:
            return self._workers.watch(iter(self._data))
        copied = cast("DataLoader[object]", self._data)
        restarts = start.restarts_workers and self._changes.has_workers
        if (changes := self._changes.take_changes()) or restarts:
            self.close()
            named = naming(changes, has_workers=copied.num_workers > 0)
            copied.__dict__.update(shielded(named))
        batches = self._workers.watch(iter(copied))
        self._changes.note_start(copied)
        if copied.num_workers > 1 and start.passes <= 1 and not start.skip:
            return watch_for_repeats(copied, batches)
        return batches

    def share(self, cut: Cut, *, is_shard: bool) -> None:
        """Keep one rank's part of each batch from now on."""
        if isinstance(self._data, DataLoader):
            self._samplers = SamplerStates(samplers_of(self._data))
        # These draw nothing while they are read.
        is_plain = type(self._data) in (list, tuple)
        self._shared = SharedPasses(cut, is_shard=is_shard, has_stream=not is_plain)
        if is_shard:
            self.inexact = (
                "it divides itself by shard(rank, size): it continues only on the same number of "
                f"processes, and where its batches are the same again{self._consequence()}"
            )

    def _consequence(self) -> str:
        return f". Besides, {self.inexact}" if self.inexact else ""

    def generators(self) -> list[torch.Generator]:
        """Return the generator of a DataLoader; no other data is known to have one."""
        generator = getattr(self._data, "generator", None)
        return [generator] if isinstance(generator, torch.Generator) else []

    def _loader_state(self, position: int) -> dict[str, object]:
        return {"loader": {}}  # The batches before the position are read again.

    def _load_loader(self, state: Mapping[str, object]) -> None:
        pass

    def close(self) -> bool:
        """End the workers, including persistent ones."""
        if self._changes is not None:
            self._data.__dict__["_iterator"] = None
            self._changes.note_end()
        return self._workers.end()


class StatefulReader(PlainReader):
    """Leaves the position in the data to a loader that keeps it itself."""

    def __init__(self, data: Stateful) -> None:
        super().__init__(cast("Iterable[object]", data))
        self._loader = data
        self.inexact = None
        if getattr(data, "num_workers", 0):
            self.inexact = (
                "its state does not hold the random numbers of its workers, which start again on "
                "resume"
            )

    def begin(self, start: PassStart) -> Iterator[object]:
        """Start where the loader's own state says."""
        if self._shared is not None:
            return self._shared.begin(lambda: iter(self._data), start, skips=False)
        return iter(self._data)

    def _loader_state(self, position: int) -> dict[str, object]:
        # And the random stream from which the rest is read.
        stream = self._shared.state_dict() if self._shared is not None and position else None
        state: dict[str, object] = {"loader": self._loader.state_dict()}
        return state if stream is None else {**state, "stream": stream}

    def _load_loader(self, state: Mapping[str, object]) -> None:
        # The random stream continues in the next pass.
        if loader := cast("dict[str, object]", state["loader"]):
            self._loader.load_state_dict(dict(loader))
        if self._shared is not None and (stream := state.get("stream")):
            self._shared.load_state_dict(cast("Mapping[str, object]", stream))

    def close(self) -> bool:
        """Leave the workers alone: the loader belongs to the user and ends them itself."""
        return False


_END = object()


class SharedPasses:
    """Starts passes over data that every rank reads as a whole, to keep its part of each batch.

    All ranks must get the same batches, so nothing that the data draws may depend on what the
    models draw meanwhile: the first batch is drawn from the shared order, like the order of a
    sampler, and all others from a random stream that follows from the key of the pass.

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
