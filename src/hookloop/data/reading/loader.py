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

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import cast

import torch
from torch import Tensor
from torch.utils.data import BatchSampler, DataLoader, Subset, TensorDataset, default_collate

from hookloop.data.position.indices import NoteIndices, PassStart, SkippingIndices
from hookloop.data.random.per_sample import SeededInProcess, SeededSamples, SeededWithCollate
from hookloop.data.random.workers import WorkerStates, why_not_carried
from hookloop.data.ranks.cut import Cut
from hookloop.data.reading.exactness import SeedSamples, why_loader_inexact
from hookloop.data.reading.loader_changes import LoaderChanges, shielded_copy
from hookloop.data.reading.reader import Reader
from hookloop.data.reading.samplers import SamplerStates, State, Stateful, is_of_torch, samplers_of
from hookloop.data.reading.workers import ShieldedInit, Workers

# The attributes of a loader that decide which indices it asks for.
_OF_INDICES = {"batch_sampler", "sampler", "batch_size", "num_workers", "prefetch_factor"}


class LoaderReader(Reader):
    """Reads a `DataLoader` over a map-style data set through a copy with another index sampler."""

    _changes: LoaderChanges

    def __init__(self, loader: DataLoader[object], *, seed_samples: SeedSamples) -> None:
        self._loader = loader
        self._notes: list[NoteIndices] = []
        self._changes = LoaderChanges(loader)
        self._cut: Cut | None = None
        self._seed_samples = seed_samples
        self._workers = Workers()
        self._loaded: Mapping[str, object] = {}
        self._make_indices()
        self._began: State = self._samplers.now()
        self._make_copy()
        # A batch sampler of the user's own decides by itself which samples make a batch.
        is_plain = type(loader.batch_sampler) is BatchSampler and not self._has_custom_sampler
        self.counts_samples = is_plain
        self.inexact = self._reason_inexact()

    def _make_indices(self) -> None:
        loader = self._loader
        self._samplers = SamplerStates(samplers_of(loader))
        self._has_custom_sampler = not all(map(is_of_torch, samplers_of(loader)))
        self._is_batched = loader.batch_size is not None or loader.batch_sampler is not None
        self._indices = SkippingIndices(
            _index_sampler(loader),
            self._samplers,
            is_batched=self._is_batched,
            seeds=self._seeds,
            has_own_stream=self._has_custom_sampler,
            ahead=loader.num_workers * (loader.prefetch_factor or 2),
        )
        self._indices.notes = self._notes

    def note_indices(self, note: NoteIndices) -> bool:
        """Tell somebody else, too, of the indices of each batch from the next pass on."""
        if note not in self._notes:
            self._notes.append(note)
        return True

    @property
    def draws_from(self) -> list[str] | None:
        """Those that its indices were drawn from."""
        return self._indices.draws_from

    @property
    def _seeds(self) -> bool:
        return self._seed_samples is True and self._loader.num_workers > 0

    def _make_copy(self) -> None:
        """Copy the loader; the copy shares everything with it except the source of its indices."""
        loader = self._loader
        # Attributes are set past DataLoader.__setattr__, which forbids this for loaders in use.
        self._copy = shielded_copy(loader)
        which = "batch_sampler" if loader.batch_sampler is not None else "sampler"
        changes: dict[str, object] = {which: self._indices}
        if self._seeds:
            changes["dataset"] = SeededSamples(loader.dataset)
        is_carried = self._seed_samples == "workers" and loader.num_workers > 0
        self._carried = None
        if is_carried and why_not_carried(loader) is None:
            self._carried = WorkerStates(loader)
            changes |= self._carried.changes()
        self._copy.__dict__.update(changes)
        self._gather = make_gather(loader)
        if self._cut is not None:
            self._share_copy(self._cut)

    def _follow(self, *, restarts_workers: bool) -> None:
        """Take over what a hook has changed in the user's loader since the last pass."""
        changes = self._changes.take_changes()
        is_new = changes or (restarts_workers and self._changes.has_workers)
        if is_new:
            self.close()
        if changes.keys() & _OF_INDICES:
            self._make_indices()
        if is_new:  # Also for new workers alone: those of torch begin with new random numbers.
            before = self._carried
            self._make_copy()
            if self._carried is not None and before is not None:
                self._carried.follow(before)

    def begin(self, start: PassStart) -> Iterator[object]:
        """Start a pass; the data before the position is not read."""
        self._follow(restarts_workers=start.restarts_workers)
        if self._carried is not None and (start.skip or start.samples):
            self.close()  # Workers that run are ahead of the position.
        # torch draws the seed of persistent workers only in the first pass, before the sampler
        # draws the order. If a resumed run starts them in a later pass, that draw must leave no
        # trace in the generators.
        is_started = self._copy.__dict__["_iterator"] is not None
        late_start = self._loader.persistent_workers and start.passes > 1 and not is_started
        state: Mapping[str, object] = {}
        if start.skip or start.samples:
            state = self._loaded or self._state_of_loader(start.skip)
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
        elif self._carried is not None:
            passed = self._workers.watch(self._carried.begin(self._copy, start))
            batches = map(self._carried.receive, cast("Iterator[Sequence[object]]", passed))
        else:
            batches = self._workers.watch(iter(self._copy))
        self._changes.note_start(self._copy)
        self._indices.prime()
        if self._cut is not None and not self._is_batched:
            return self._cut.all(batches)
        return batches

    def share(self, cut: Cut, *, is_shard: bool) -> None:
        """Load only one rank's samples from now on, or cut what was loaded without batches."""
        self._cut = cut
        self._share_copy(cut)

    def _share_copy(self, cut: Cut) -> None:
        self._indices.primes = True
        if self._is_batched:
            self._indices.cut = cut
        # All ranks need the same order, so their batches must come in it.
        changes: dict[str, object] = {"in_order": True}
        # Beginning the generators again takes longer than loading a sample of tensors does.
        draws = self._loader.num_workers > 0 or not draws_nothing(self._loader.dataset)
        is_left = self._seed_samples == "workers" and self._loader.num_workers > 0
        collate = self._loader.collate_fn
        collates = bool(cut.logical and self._is_batched and collate is not default_collate)
        if self._seed_samples and self._gather is None and (draws or collates) and not is_left:
            self._indices.seeds = True
            seeded = SeededSamples if self._loader.num_workers else SeededInProcess
            changes["dataset"] = seeded(self._loader.dataset)
            if collates and not self._loader.num_workers:
                with_collate = SeededWithCollate(self._loader.dataset, collate)
                changes |= {"dataset": with_collate, "collate_fn": with_collate.collate}
        elif self._carried is not None:
            changes |= self._carried.changes(cut.rank)
        elif self._loader.num_workers:
            changes["worker_init_fn"] = ShieldedInit(self._loader.worker_init_fn, cut.rank)
        self._copy.__dict__.update(changes)
        self.inexact = self._reason_inexact()

    def _reason_inexact(self) -> str | None:
        saved = (*self.generators(), *self._samplers.generators())
        return why_loader_inexact(
            self._loader, saved, self._seed_samples, in_order=self._copy.in_order
        )

    def generators(self) -> list[torch.Generator]:
        """Return the generators of the loader and its samplers, each once."""
        found = {
            id(generator): generator
            for holder in (self._loader, *samplers_of(self._loader))
            if isinstance(generator := getattr(holder, "generator", None), torch.Generator)
        }
        return list(found.values())

    def _loader_state(self, position: int) -> dict[str, object]:
        return {"loader": self._state_of_loader(position)}

    def _state_of_loader(self, position: int) -> dict[str, object]:
        state: dict[str, object] = {}
        # The order of torch's own samplers is given by the process's generators. A generator of
        # the loader may be drawn from during the pass.
        if self._has_custom_sampler or self.generators():
            now = self._samplers.now()
            state = {"began": self._began, "samplers": now, **self._indices.state(position)}
        if isinstance(self._loader.dataset, Stateful):
            state["dataset"] = self._loader.dataset.state_dict()
        return state

    def _load_loader(self, state: Mapping[str, object]) -> None:
        loader = cast("Mapping[str, object]", state["loader"])
        if isinstance(self._loader.dataset, Stateful) and "dataset" in loader:
            self._loader.dataset.load_state_dict(cast("dict[str, object]", loader["dataset"]))
        if "began" in loader:
            self._loaded = loader
            self._began = cast("State", loader["began"])
            self._samplers.restore(cast("State", loader["samplers"]))

    def close(self) -> bool:
        """End the workers, including persistent ones."""
        self._copy.__dict__["_iterator"] = None
        self._changes.note_end()
        return self._workers.end()


def _index_sampler(loader: DataLoader[object]) -> Iterable[object]:
    return loader.batch_sampler if loader.batch_sampler is not None else loader.sampler


Gather = Callable[[Sequence[int]], list[Tensor]]


def make_gather(loader: DataLoader[object]) -> Gather | None:
    """Return a function that makes a batch from indices, or None if the loader does more."""
    # Exact types and the default collate_fn: a subclass may do anything with a sample.
    plain = (
        type(loader) is DataLoader
        and loader.num_workers == 0
        and loader.batch_sampler is not None
        and loader.collate_fn is default_collate
        and not loader.pin_memory
    )
    if not plain:
        return None
    dataset, chosen = loader.dataset, None
    if type(dataset) is Subset:
        chosen = torch.as_tensor(dataset.indices)
        dataset = dataset.dataset
    if type(dataset) is not TensorDataset:
        return None
    tensors = dataset.tensors
    if any(tensor.requires_grad or tensor.device.type != "cpu" for tensor in tensors):
        return None

    def gather(indices: Sequence[int]) -> list[Tensor]:
        rows = torch.tensor(indices)
        if chosen is not None:
            rows = chosen[rows]
        return [tensor[rows] for tensor in tensors]

    return gather


def draws_nothing(dataset: object) -> bool:
    """Return whether loading a sample surely draws no random number."""
    while type(dataset) is Subset:
        dataset = dataset.dataset
    return type(dataset) is TensorDataset


def read_tensors(
    loader: DataLoader[object], indices: Iterator[object], gather: Gather
) -> Iterator[object]:
    """Read a pass as the loader would, at a fraction of the cost.

    A plain `DataLoader` over a `TensorDataset` picks sample after sample and stacks them again.
    Indexing the tensors with the whole batch gives the same bits in the same order.
    """
    # A DataLoader draws a seed for workers before the order, even if it has no workers. Without
    # this draw, all later random numbers would differ from those of a plain loop.
    torch.empty((), dtype=torch.int64).random_(generator=loader.generator)
    return map(gather, cast("Iterator[Sequence[int]]", indices))
