"""How one pass over data is begun, from its first batch or from the middle.

A pass is continued exactly when its order is the same again and the skipped batches are not read:

- a `DataLoader` over a map-style data set draws its order from the generators as they were when the
  pass began, and its index sampler is advanced without touching the data;
- a loader with a ``state_dict`` of its own (torchdata's StatefulDataLoader) is asked for it;
- anything else is read and dropped up to the place, which is exact if its batches do not change.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol, cast

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset

from hookloop.data.fast import gather_of, read_fast
from hookloop.data.samplers import (
    OwnRandomness,
    SamplerStates,
    State,
    Stateful,
    is_of_torch,
    samplers_of,
)
from hookloop.data.seeding import Sample, SeededSamples
from hookloop.data.workers import Shielded, Workers


@dataclass(frozen=True)
class Place:
    """Where a pass begins.

    Attributes:
        skip: Batches that are not wanted.
        key: What the randomness of samples loaded in workers follows from.
        passes: The number of the pass, from 1.
        rewind: Sets the generators to where they were when the pass began.
    """

    skip: int = 0
    key: int = 0
    passes: int = 1
    rewind: Callable[[], None] = lambda: None


class Reader(Protocol):
    """A way to begin a pass.

    Attributes:
        inexact: Why a resumed pass may differ, or None if it does not.
    """

    inexact: str | None

    def begin(self, place: Place) -> Iterator[object]:
        """Begin a pass."""

    def generators(self) -> list[torch.Generator]:
        """The generators that the order depends on, besides the process's own."""

    def state_dict(self) -> dict[str, object]:
        """The loader's own state, where it has one."""

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Take back what `state_dict` returned."""

    def close(self) -> bool:
        """End the processes that passes have started; return whether there were any."""


def make_reader(data: Iterable[object], *, seed_samples: bool) -> Reader:
    """Choose how to read some data."""
    if isinstance(data, Stateful):
        return StatefulReader(data)
    if isinstance(data, DataLoader) and not isinstance(data.dataset, IterableDataset):
        return LoaderReader(data, seed_samples=seed_samples)
    return PlainReader(_shielded(data) if isinstance(data, DataLoader) else data)


class PlainReader:
    """Reads any iterable; what is to be skipped is read and dropped."""

    def __init__(self, data: Iterable[object]) -> None:
        self._data = data
        self._workers = Workers()
        self.inexact: str | None = None
        if isinstance(data, DataLoader):
            self.inexact = (
                "its data set is iterable: on resume the batches before the place are read and "
                "dropped, and randomness inside it starts anew"
            )
        elif isinstance(data, Iterator):
            self.inexact = "it can be read only once: a resumed run cannot find its place in it"
        elif not isinstance(data, Sequence):
            self.inexact = (
                "it is no DataLoader and has no state_dict(): on resume the batches before the "
                "place are read and dropped"
            )

    def begin(self, place: Place) -> Iterator[object]:
        """Begin a pass, reading and dropping what is to be skipped."""
        batches = self._workers.watch(iter(self._data))
        next(islice(batches, place.skip, place.skip), None)
        return batches

    def generators(self) -> list[torch.Generator]:
        """Only a DataLoader is known to have any."""
        generator = getattr(self._data, "generator", None)
        return [generator] if isinstance(generator, torch.Generator) else []

    def state_dict(self) -> dict[str, object]:
        """There is none."""
        return {}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """There is none."""

    def close(self) -> bool:
        """End the workers, those that persist as well."""
        if isinstance(self._data, DataLoader):
            self._data.__dict__["_iterator"] = None
        return self._workers.end()


class StatefulReader(PlainReader):
    """Leaves the place in the data to a loader that keeps it itself."""

    def __init__(self, data: Stateful) -> None:
        super().__init__(cast("Iterable[object]", data))
        self._loader = data
        self.inexact = None
        if getattr(data, "num_workers", 0):
            self.inexact = (
                "its state does not hold the random numbers of its workers, which begin anew on "
                "resume"
            )

    def begin(self, place: Place) -> Iterator[object]:
        """Begin where the loader's own state says."""
        return iter(self._data)

    def state_dict(self) -> dict[str, object]:
        """Return the loader's own state."""
        return self._loader.state_dict()

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Give the loader its own state back."""
        self._loader.load_state_dict(dict(state))

    def close(self) -> bool:
        """Leave the workers alone: the loader is the user's own, and ends them itself."""
        return False


class LoaderReader:
    """Reads a `DataLoader` over a map-style data set through a copy with another index sampler."""

    def __init__(self, loader: DataLoader[object], *, seed_samples: bool) -> None:
        self._loader = loader
        seeds = seed_samples and loader.num_workers > 0
        # The copy shares everything with the user's loader but the source of its indices. Its
        # attributes are set past DataLoader.__setattr__, which forbids this for loaders in use.
        self._copy = _shielded(loader)
        self._workers = Workers()
        self._indices = SkippingIndices(
            _index_sampler(loader),
            one_each=loader.batch_size is not None or loader.batch_sampler is not None,
            seeds=seeds,
            draws_alone=not all(map(is_of_torch, samplers_of(loader))),
        )
        self._samplers = SamplerStates(samplers_of(loader))
        self._began: State = self._samplers.now()
        which = "batch_sampler" if loader.batch_sampler is not None else "sampler"
        changes: dict[str, object] = {which: self._indices}
        if seeds:
            changes["dataset"] = SeededSamples(loader.dataset)
        self._copy.__dict__.update(changes)
        self._gather = gather_of(loader)
        self.inexact = self._why_inexact(seeds)

    def begin(self, place: Place) -> Iterator[object]:
        """Begin a pass; the data before the place is not read."""
        # A seed for workers that persist is drawn in the first pass only, before the sampler draws
        # the order. Where they are started in a later pass, nothing must be seen of that draw.
        is_started = self._copy.__dict__["_iterator"] is not None
        late_start = self._loader.persistent_workers and place.passes > 1 and not is_started
        if place.skip:
            self._samplers.restore(self._began)
        else:
            self._began = self._samplers.now()
        self._indices.prepare(place, rewinds=late_start)
        if self._gather is not None:
            batches = read_fast(self._loader, iter(self._indices), self._gather)
        else:
            batches = self._workers.watch(iter(self._copy))
        self._indices.prime()
        return batches

    def generators(self) -> list[torch.Generator]:
        """Return those of the loader and its samplers."""
        found = {
            id(generator): generator
            for holder in (self._loader, *samplers_of(self._loader))
            if isinstance(generator := getattr(holder, "generator", None), torch.Generator)
        }
        return list(found.values())

    def state_dict(self) -> dict[str, object]:
        """Return what samplers keep; the place is counted by the source."""
        now = self._samplers.now()
        return {"began": self._began, "samplers": now} if now else {}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Give samplers their state back."""
        self._began = cast("State", state["began"])
        self._samplers.restore(cast("State", state["samplers"]))

    def close(self) -> bool:
        """End the workers, those that persist as well."""
        self._copy.__dict__["_iterator"] = None
        return self._workers.end()

    def _why_inexact(self, seeds: bool) -> str | None:
        known = {id(one) for one in self.generators()}
        holders = {"data set": self._loader.dataset, "sampler": _index_sampler(self._loader)}
        for what, holder in holders.items():
            own = [name for name, one in _own_generators(holder) if id(one) not in known]
            if own:
                return (
                    f"its {what} keeps a random generator of its own ('{own[0]}'), which no "
                    "checkpoint holds: draw from torch's, NumPy's or Python's global generators"
                )
        if self._loader.num_workers and not seeds:
            return (
                "seed_samples=False leaves the random numbers of its workers to torch, which "
                "begins them anew on resume"
            )
        return None


class SkippingIndices:
    """An index sampler that can begin in the middle; used by a loader in place of its own.

    The inner sampler is not advanced before the first index is asked for, because it draws its
    random numbers then, after the loader has drawn its own: as without us.

    Args:
        inner: The sampler.
        one_each: Whether it gives a batch of indices at a time.
        seeds: Whether each index goes along with its sample's seed.
        draws_alone: Whether random numbers that it draws later on come from a stream of their own.
    """

    def __init__(
        self, inner: Iterable[object], *, one_each: bool, seeds: bool, draws_alone: bool = False
    ) -> None:
        self._inner = inner
        self._one_each = one_each
        self._seeds = seeds
        self._draws_alone = draws_alone
        self._place = Place()
        self._rewinds = False
        self._current: _Indices | None = None

    def prepare(self, place: Place, *, rewinds: bool) -> None:
        """Say where the next pass begins, and whether the generators go back before it does."""
        self._place, self._rewinds = place, rewinds

    def prime(self) -> None:
        """Do the skipping now, if the loader has not asked for an index yet."""
        if self._place.skip and self._current is not None:
            self._current.prime()

    def __iter__(self) -> Iterator[object]:
        rewind = self._place.rewind if self._rewinds else None
        inner = iter(self._inner)
        if self._draws_alone:
            inner = _draw_alone(inner, self._place.key)
        self._current = _Indices(inner, self._place.skip, rewind)
        return self._seeded(self._current) if self._seeds else self._current

    def __len__(self) -> int:
        return len(cast("Sequence[object]", self._inner))

    def _seeded(self, indices: Iterator[object]) -> Iterator[object]:
        """Give each index the seed of its sample, which follows from pass and place."""
        key = self._place.key
        for batch, group in enumerate(indices, start=self._place.skip):
            if self._one_each:
                listed = list(cast("Iterable[object]", group))
                yield [Sample(index, key, batch, place) for place, index in enumerate(listed)]
            else:
                yield Sample(group, key, batch, 0)


class _Indices:
    """An iterator that skips once, at the latest when the first index is asked for."""

    def __init__(
        self, inner: Iterator[object], skip: int, rewind: Callable[[], None] | None
    ) -> None:
        self._inner = inner
        self._skip = skip
        self._rewind = rewind

    def prime(self) -> None:
        rewind, self._rewind = self._rewind, None
        skip, self._skip = self._skip, 0
        if rewind is not None:
            rewind()
        next(islice(self._inner, skip, skip), None)

    def __iter__(self) -> Iterator[object]:
        return self

    def __next__(self) -> object:
        if self._skip or self._rewind is not None:
            self.prime()
        return next(self._inner)


def _draw_alone(indices: Iterator[object], key: int) -> Iterator[object]:
    """Let a sampler draw undisturbed by what the model draws in between, and the other way round.

    The first time it draws as without us, since most samplers then draw for the whole pass.
    """
    own = OwnRandomness(key)
    yield from islice(indices, 1)
    while True:
        with own:
            index = next(indices, _END)
        if index is _END:
            return
        yield index


_END = object()


def _shielded(loader: DataLoader[object]) -> DataLoader[object]:
    """Copy a loader, whose workers then outlive the signal that ends the run."""
    copied = copy.copy(loader)
    init = Shielded(loader.worker_init_fn)
    copied.__dict__.update({"worker_init_fn": init, "_iterator": None})
    return copied


def _index_sampler(loader: DataLoader[object]) -> Iterable[object]:
    return loader.batch_sampler if loader.batch_sampler is not None else loader.sampler


def _own_generators(holder: object, depth: int = 3) -> list[tuple[str, object]]:
    """Find the attributes of a data set or sampler, and of what it holds, that are generators."""
    found: list[tuple[str, object]] = []
    for name, value in getattr(holder, "__dict__", {}).items():
        if isinstance(value, _GENERATORS):
            found.append((name, value))
        elif depth:
            parts = value[:100] if isinstance(value, list | tuple) else [value]
            for part in parts:
                below = _own_generators(part, depth - 1)
                found += [(f"{name}.{inner}", one) for inner, one in below]
    return found


_GENERATORS = (torch.Generator, np.random.Generator, np.random.RandomState, random.Random)
