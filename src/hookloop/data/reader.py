"""How one pass over data is begun, from its first batch or from the middle.

A pass is continued exactly when its order is the same again and the skipped batches are not read:

- a `DataLoader` over a map-style data set draws its order from the generators as they were when the
  pass began, and its index sampler is advanced without touching the data;
- a loader with a ``state_dict`` of its own (torchdata's StatefulDataLoader) is asked for it;
- anything else is read and dropped up to the place, which is exact if its batches do not change.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Protocol, cast

import torch
from torch.utils.data import DataLoader, IterableDataset

from hookloop.data.fast import gather_of, read_fast
from hookloop.data.hidden import generators_in
from hookloop.data.indices import Place, SkippingIndices
from hookloop.data.samplers import SamplerStates, State, Stateful, is_of_torch, samplers_of
from hookloop.data.seeding import SeededSamples
from hookloop.data.workers import Shielded, Workers


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

    def state_dict(self, position: int) -> dict[str, object]:
        """The loader's own state, where it has one, when that many batches have arrived."""

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
        elif _iterates_by_itself(data):
            self.inexact = (
                f"{type(data).__name__} has an __iter__ of its own, which may give another order "
                "each time: on resume the batches before the place are read and dropped"
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

    def state_dict(self, position: int) -> dict[str, object]:
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

    def state_dict(self, position: int) -> dict[str, object]:
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
        self._samplers = SamplerStates(samplers_of(loader))
        self._has_own = not all(map(is_of_torch, samplers_of(loader)))
        self._indices = SkippingIndices(
            _index_sampler(loader),
            self._samplers,
            one_each=loader.batch_size is not None or loader.batch_sampler is not None,
            seeds=seeds,
            draws_alone=self._has_own,
            ahead=loader.num_workers * (loader.prefetch_factor or 2),
        )
        self._began: State = self._samplers.now()
        self._left: Mapping[str, object] = {}
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
        left: Mapping[str, object] = {}
        if place.skip:
            left = self._left or self.state_dict(place.skip)
            self._samplers.restore(self._began)
        else:
            self._began = self._samplers.now()
        self._left = {}
        self._indices.prepare(place, left if "drawn" in left else {}, rewinds=late_start)
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

    def state_dict(self, position: int) -> dict[str, object]:
        """Return what samplers keep, and how far they are ahead."""
        state: dict[str, object] = {}
        # Torch's samplers are where the generators say, unless one is drawn from as they go.
        if self._has_own or self.generators():
            now = self._samplers.now()
            state = {"began": self._began, "samplers": now, **self._indices.state(position)}
        if isinstance(self._loader.dataset, Stateful):
            state["dataset"] = self._loader.dataset.state_dict()
        return state

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Give samplers and the data set their state back."""
        if isinstance(self._loader.dataset, Stateful) and "dataset" in state:
            self._loader.dataset.load_state_dict(cast("dict[str, object]", state["dataset"]))
        if "began" in state:
            self._left = state
            self._began = cast("State", state["began"])
            self._samplers.restore(cast("State", state["samplers"]))

    def close(self) -> bool:
        """End the workers, those that persist as well."""
        self._copy.__dict__["_iterator"] = None
        return self._workers.end()

    def _why_inexact(self, seeds: bool) -> str | None:
        known = {id(one) for one in (*self.generators(), *self._samplers.generators())}
        holders = {
            "data set": self._loader.dataset,
            "sampler": _index_sampler(self._loader),
            "collate_fn": [self._loader.collate_fn],
        }
        for what, holder in holders.items():
            own = [name for name, one in generators_in(holder) if id(one) not in known]
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


def _shielded(loader: DataLoader[object]) -> DataLoader[object]:
    """Copy a loader, whose workers then outlive the signal that ends the run."""
    copied = copy.copy(loader)
    init = Shielded(loader.worker_init_fn)
    copied.__dict__.update({"worker_init_fn": init, "_iterator": None})
    return copied


def _index_sampler(loader: DataLoader[object]) -> Iterable[object]:
    return loader.batch_sampler if loader.batch_sampler is not None else loader.sampler


def _iterates_by_itself(data: Iterable[object]) -> bool:
    """Return whether a list, or what is like one, has an ``__iter__`` that somebody wrote."""
    kind = next(kind for kind in type(data).__mro__ if "__iter__" in vars(kind))
    return kind.__module__.partition(".")[0] not in ("builtins", "collections", "_collections_abc")
