"""Start a pass over data, at its first batch or in the middle.

A pass continues exactly if its order is the same again. How that is done depends on the data:

- a `DataLoader` over a map-style data set draws its order from the generators as they were when the
  pass began, and its index sampler is advanced without reading the data;
- a loader with its own ``state_dict`` (torchdata's StatefulDataLoader) restores itself;
- anything else is read and dropped up to the position, which is exact if its batches do not change.

When several ranks share the data, a `DataLoader` over a map-style data set loads only the samples
of its rank. Anything else is read by every rank as a whole, and each keeps its part of each batch.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Protocol, cast

import torch
from torch.utils.data import BatchSampler, DataLoader, IterableDataset

from hookloop.data.cut import Cut
from hookloop.data.find_generators import find_generators
from hookloop.data.indices import PassStart, SkippingIndices
from hookloop.data.samplers import SamplerStates, State, Stateful, is_of_torch, samplers_of
from hookloop.data.seeding import SeededInProcess, SeededSamples
from hookloop.data.shared_passes import SharedPasses
from hookloop.data.tensor_batches import is_drawless, make_gather, read_tensors
from hookloop.data.workers import ShieldedInit, Workers


class Reader(Protocol):
    """A way to start a pass.

    Attributes:
        inexact: Why a resumed pass may differ, or None if it does not.
        counts_samples: Whether a pass can continue after any number of samples, so that the batch
            size may change.
    """

    inexact: str | None
    counts_samples: bool

    def begin(self, start: PassStart) -> Iterator[object]:
        """Start a pass."""

    def generators(self) -> list[torch.Generator]:
        """Return the generators that the order depends on, except for the process's own."""

    def state_dict(self, position: int) -> dict[str, object]:
        """Return the loader's own state, if it has one, after that many batches."""

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Restore what `state_dict` returned."""

    def close(self) -> bool:
        """End the processes that passes have started; return whether there were any."""

    def share(self, cut: Cut, *, is_shard: bool) -> None:
        """Read one rank's part from now on; a shard is already the data of one rank."""

    def sampler_states(self) -> State:
        """Return the whole state of the samplers, for another rank."""

    def load_sampler_states(self, states: State) -> None:
        """Restore what `sampler_states` returned."""

    def stream_state(self) -> dict[str, object] | None:
        """Return the random stream from which the rest of the pass is read, if it is needed."""

    def load_stream_state(self, state: Mapping[str, object]) -> None:
        """Continue from what `stream_state` returned."""


def make_reader(data: Iterable[object], *, seed_samples: bool) -> Reader:
    """Choose how to read some data."""
    if isinstance(data, Stateful):
        return StatefulReader(data)
    if isinstance(data, DataLoader) and not isinstance(data.dataset, IterableDataset):
        return LoaderReader(data, seed_samples=seed_samples)
    return PlainReader(_shielded_copy(data) if isinstance(data, DataLoader) else data)


class PlainReader:
    """Reads any iterable; batches to skip are read and dropped."""

    def __init__(self, data: Iterable[object]) -> None:
        self._data = data
        self._workers = Workers()
        self._shared: SharedPasses | None = None
        self._samplers = SamplerStates([])
        self.counts_samples = False
        self.inexact: str | None = None
        if isinstance(data, DataLoader):
            self.inexact = (
                "its data set is iterable: on resume the batches before the position are read and "
                "dropped, and randomness inside it starts again"
            )
        elif isinstance(data, Iterator):
            self.inexact = "it can be read only once: a resumed run cannot find its position in it"
        elif not isinstance(data, Sequence):
            self.inexact = (
                "it is not a DataLoader and has no state_dict(): on resume the batches before the "
                "position are read and dropped"
            )
        elif _has_custom_iter(data):
            self.inexact = (
                f"{type(data).__name__} has an __iter__ of its own, which may give another order "
                "each time: on resume the batches before the position are read and dropped"
            )

    def begin(self, start: PassStart) -> Iterator[object]:
        """Start a pass; read and drop the batches to skip."""
        if self._shared is not None:
            return self._shared.begin(lambda: self._workers.watch(iter(self._data)), start)
        batches = self._workers.watch(iter(self._data))
        next(islice(batches, start.skip, start.skip), None)
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
                f"processes, and where its batches are the same again{self._and_so()}"
            )

    def _and_so(self) -> str:
        return f". Besides, {self.inexact}" if self.inexact else ""

    def sampler_states(self) -> State:
        """Return the whole state of the samplers of a DataLoader."""
        return self._samplers.whole()

    def load_sampler_states(self, states: State) -> None:
        """Restore the state of the samplers."""
        self._samplers.restore(states)

    def stream_state(self) -> dict[str, object] | None:
        """Return None: the batches before the position are read again, from the same stream."""
        return None

    def load_stream_state(self, state: Mapping[str, object]) -> None:
        """Do nothing: there is no such state."""

    def generators(self) -> list[torch.Generator]:
        """Return the generator of a DataLoader; no other data is known to have one."""
        generator = getattr(self._data, "generator", None)
        return [generator] if isinstance(generator, torch.Generator) else []

    def state_dict(self, position: int) -> dict[str, object]:
        """Return an empty state."""
        return {}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Do nothing: the state is empty."""

    def close(self) -> bool:
        """End the workers, including persistent ones."""
        if isinstance(self._data, DataLoader):
            self._data.__dict__["_iterator"] = None
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

    def stream_state(self) -> dict[str, object] | None:
        """Return the random stream, because nothing is read again up to the position."""
        return self._shared.state_dict() if self._shared is not None else None

    def load_stream_state(self, state: Mapping[str, object]) -> None:
        """Continue the random stream in the next pass."""
        if self._shared is not None:
            self._shared.load_state_dict(state)

    def state_dict(self, position: int) -> dict[str, object]:
        """Return the loader's own state."""
        return self._loader.state_dict()

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Restore the loader's own state."""
        self._loader.load_state_dict(dict(state))

    def close(self) -> bool:
        """Leave the workers alone: the loader belongs to the user and ends them itself."""
        return False


class LoaderReader:
    """Reads a `DataLoader` over a map-style data set through a copy with another index sampler."""

    def __init__(self, loader: DataLoader[object], *, seed_samples: bool) -> None:
        self._loader = loader
        self._cut: Cut | None = None
        self._seed_samples = seed_samples
        seeds = seed_samples and loader.num_workers > 0
        # The copy shares everything with the user's loader except the source of its indices. Its
        # attributes are set past DataLoader.__setattr__, which forbids this for loaders in use.
        self._copy = _shielded_copy(loader)
        self._workers = Workers()
        self._samplers = SamplerStates(samplers_of(loader))
        self._has_custom_sampler = not all(map(is_of_torch, samplers_of(loader)))
        self._is_batched = loader.batch_size is not None or loader.batch_sampler is not None
        self._indices = SkippingIndices(
            _index_sampler(loader),
            self._samplers,
            is_batched=self._is_batched,
            seeds=seeds,
            has_own_stream=self._has_custom_sampler,
            ahead=loader.num_workers * (loader.prefetch_factor or 2),
        )
        self._began: State = self._samplers.now()
        self._loaded: Mapping[str, object] = {}
        which = "batch_sampler" if loader.batch_sampler is not None else "sampler"
        changes: dict[str, object] = {which: self._indices}
        if seeds:
            changes["dataset"] = SeededSamples(loader.dataset)
        self._copy.__dict__.update(changes)
        self._gather = make_gather(loader)
        # A batch sampler of the user's own decides by itself which samples make a batch.
        is_plain = type(loader.batch_sampler) is BatchSampler and not self._has_custom_sampler
        self.counts_samples = is_plain
        self.inexact = self._why_inexact(seeds)

    def begin(self, start: PassStart) -> Iterator[object]:
        """Start a pass; the data before the position is not read."""
        # torch draws the seed of persistent workers only in the first pass, before the sampler
        # draws the order. If a resumed run starts them in a later pass, that draw must leave no
        # trace in the generators.
        is_started = self._copy.__dict__["_iterator"] is not None
        late_start = self._loader.persistent_workers and start.passes > 1 and not is_started
        state: Mapping[str, object] = {}
        if start.skip or start.samples:
            state = self._loaded or self.state_dict(start.skip)
            self._samplers.restore(self._began)
        else:
            self._began = self._samplers.now()
        self._loaded = {}
        # What was drawn ahead were batches of the old size, if that has just changed.
        ahead = state if "drawn" in state and start.skip else {}
        self._indices.prepare(start, ahead, rewinds=late_start)
        if self._cut is not None:
            self._cut.shares.clear()  # Of batches that workers had loaded in advance.
        if self._gather is not None:
            batches = read_tensors(self._loader, iter(self._indices), self._gather)
        else:
            batches = self._workers.watch(iter(self._copy))
        self._indices.prime()
        if self._cut is not None and not self._is_batched:
            return map(self._cut.batch, batches)
        return batches

    def share(self, cut: Cut, *, is_shard: bool) -> None:
        """Load only one rank's samples from now on, or cut what was loaded without batches."""
        self._cut = cut
        self._indices.primes = True
        if self._is_batched:
            self._indices.cut = cut
        # All ranks need the same order, so their batches must come in it.
        changes: dict[str, object] = {"in_order": True}
        # Beginning the generators again takes longer than loading a sample of tensors does.
        draws = self._loader.num_workers > 0 or not is_drawless(self._loader.dataset)
        if self._seed_samples and self._gather is None and draws:
            self._indices.seeds = True
            seeded = SeededSamples if self._loader.num_workers else SeededInProcess
            changes["dataset"] = seeded(self._loader.dataset)
        elif self._loader.num_workers:
            changes["worker_init_fn"] = ShieldedInit(self._loader.worker_init_fn, cut.rank)
        self._copy.__dict__.update(changes)

    def sampler_states(self) -> State:
        """Return the whole state of the samplers."""
        return self._samplers.whole()

    def load_sampler_states(self, states: State) -> None:
        """Restore the state of the samplers."""
        self._samplers.restore(states)

    def stream_state(self) -> dict[str, object] | None:
        """Return None: what has to be saved is in the state of the indices."""
        return None

    def load_stream_state(self, state: Mapping[str, object]) -> None:
        """Do nothing: there is no such state."""

    def generators(self) -> list[torch.Generator]:
        """Return the generators of the loader and its samplers, each once."""
        found = {
            id(generator): generator
            for holder in (self._loader, *samplers_of(self._loader))
            if isinstance(generator := getattr(holder, "generator", None), torch.Generator)
        }
        return list(found.values())

    def state_dict(self, position: int) -> dict[str, object]:
        """Return the state of the samplers, and how far they are ahead."""
        state: dict[str, object] = {}
        # The order of torch's own samplers is given by the process's generators. A generator of
        # the loader may be drawn from during the pass.
        if self._has_custom_sampler or self.generators():
            now = self._samplers.now()
            state = {"began": self._began, "samplers": now, **self._indices.state(position)}
        if isinstance(self._loader.dataset, Stateful):
            state["dataset"] = self._loader.dataset.state_dict()
        return state

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Restore the state of the samplers and of the data set."""
        if isinstance(self._loader.dataset, Stateful) and "dataset" in state:
            self._loader.dataset.load_state_dict(cast("dict[str, object]", state["dataset"]))
        if "began" in state:
            self._loaded = state
            self._began = cast("State", state["began"])
            self._samplers.restore(cast("State", state["samplers"]))

    def close(self) -> bool:
        """End the workers, including persistent ones."""
        self._copy.__dict__["_iterator"] = None
        return self._workers.end()

    def _why_inexact(self, seeds: bool) -> str | None:
        saved = {id(one) for one in (*self.generators(), *self._samplers.generators())}
        holders = {
            "data set": self._loader.dataset,
            "sampler": _index_sampler(self._loader),
            "collate_fn": [self._loader.collate_fn],
        }
        for what, holder in holders.items():
            own = [name for name, found in find_generators(holder) if id(found) not in saved]
            if own:
                return (
                    f"its {what} has a random generator of its own ('{own[0]}'), which no "
                    "checkpoint holds: draw from torch's, NumPy's or Python's global generators"
                )
        if self._loader.num_workers and not seeds:
            return (
                "seed_samples=False leaves the random numbers of its workers to torch, which "
                "starts them again on resume"
            )
        return None


def _shielded_copy(loader: DataLoader[object]) -> DataLoader[object]:
    """Copy a loader so that its workers ignore the signals that end a run."""
    copied = copy.copy(loader)
    init = ShieldedInit(loader.worker_init_fn)
    copied.__dict__.update({"worker_init_fn": init, "_iterator": None})
    return copied


def _index_sampler(loader: DataLoader[object]) -> Iterable[object]:
    return loader.batch_sampler if loader.batch_sampler is not None else loader.sampler


def _has_custom_iter(data: Iterable[object]) -> bool:
    """Return whether the ``__iter__`` of a sequence is not that of a built-in type."""
    kind = next(kind for kind in type(data).__mro__ if "__iter__" in vars(kind))
    return kind.__module__.partition(".")[0] not in ("builtins", "collections", "_collections_abc")
