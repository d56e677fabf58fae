"""Which samples an iteration of a run had, found without training and without reading them.

The loop is walked once more from the checkpoint before, with an update that does nothing. A loader
draws the orders of its passes from the random numbers that the record of the run has for each pass,
and its sampler is advanced; the samples themselves are not loaded.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset, RandomSampler

from hookloop.checkpoint.store.store import CheckpointStore
from hookloop.data.mixing.mixture import Mixture
from hookloop.data.position.origin import names_of_origin
from hookloop.data.position.position import SharedGenerators
from hookloop.data.random.states import GeneratorStates
from hookloop.data.ranks.cut import Cut
from hookloop.data.reading.loader_changes import shielded_copy
from hookloop.data.reading.samplers import Stateful, samplers_of
from hookloop.engine.hook import Hook, Priority
from hookloop.hooks.data.set_sampler_epoch import SetSamplerEpoch
from hookloop.hooks.measuring.record_fingerprints import SPARE, hash_of_samples
from hookloop.parallel.world import World
from hookloop.runs.fingerprints import present_fingerprints
from hookloop.runs.interventions import read_interventions, unpacked
from hookloop.short_runs.replay import Make, quiet
from hookloop.short_runs.route import Line, ReplayError, Route, Stretch, present_branch
from hookloop.short_runs.scratch import scratch_directory
from hookloop.short_runs.short_run import short_run
from hookloop.trainer.settings import Data

if TYPE_CHECKING:
    from hookloop.data.stream import Stream
    from hookloop.engine.run import Run

KEPT = ("train_data", "accumulate", "seed", "max_iters", "max_epochs")
"""Arguments of a Trainer that decide which samples an iteration has, besides its ``data``."""


_NOT_READ: Mapping[str, Any] = {
    "test": None, "predict": None, "val_mix": None, "count_tokens": None, "seed_samples": False,
}  # fmt: skip


@dataclass(frozen=True)
class Sample:
    """One sample of an iteration.

    Attributes:
        iter: The iteration.
        rank: The rank that read it; with logical ranks the logical one.
        microbatch: The microbatch of the iteration, from 0.
        stream: The stream of the training data; empty if there is one.
        index: Its index in the data set, or in data without indices its place in the pass.
        id: What the data set's method ``id(index)`` returns, if it has one.
    """

    iter: int
    rank: int
    microbatch: int
    stream: str
    index: object
    id: object = None


@dataclass(frozen=True)
class Samples:
    """The samples of some iterations.

    Attributes:
        first: The first iteration that was asked for.
        last: The last one.
        origin: Where the way began: a checkpoint, or the beginning.
        samples: The samples, in the order of the global batches.
        only_positions: Why there are positions and no indices for some stream; empty otherwise.
        confirmed: The iterations on the way whose recorded fingerprint has the same samples.
        seconds: How long it took.
    """

    first: int
    last: int
    origin: str
    samples: Sequence[Sample] = field(repr=False)
    only_positions: Mapping[str, str]
    confirmed: Sequence[int]
    seconds: float


def find_samples(make: Make, routes: Sequence[Route]) -> Samples:
    """Return the samples of some iterations of a run.

    Args:
        make: Builds the arguments of its Trainer, for each stretch of the way.
        routes: The ways to the iterations, the best first.

    Raises:
        ReplayError: If they cannot be found in this way, with the reason.
    """
    begun, route = perf_counter(), routes[0]
    walk = _Walk(route)
    with scratch_directory("samples") as folder, quiet():
        for number, stretch in enumerate(route.stretches):
            directory = Path(folder) / str(number) / "run"
            hook = _Follow(walk, stretch)
            short = short_run(
                partial(_arguments, make, stretch, walk),
                iters=None,
                hooks=[hook],
                run_dir=directory,
            )
            if short.iters != stretch.last:
                raise ReplayError(
                    f"The data ended after iteration {short.iters}, before {stretch.last}: the run "
                    "was trained on other data, or a hook of it has changed what was read."
                )
    return Samples(
        route.first, route.last, route.origin, walk.samples, walk.only_positions,
        walk.confirmed, perf_counter() - begun,
    )  # fmt: skip


class _Walk:
    """What is known on the way, and what was found.

    Args:
        route: The way.
    """

    def __init__(self, route: Route) -> None:
        self.route = route
        self.samples: list[Sample] = []
        self.only_positions: dict[str, str] = {}
        self.confirmed: list[int] = []
        self.loaders: dict[str, object] = {}
        self.state: Mapping[str, object] | None = None
        self.fingerprints = present_fingerprints(route.run)
        if route.checkpoint is not None:
            store = CheckpointStore(route.checkpoint.location)
            self.state = store.load(route.checkpoint.name)
        self._passes = _recorded_passes(route)

    def states(self, stream: Stream, iteration: int) -> Mapping[str, object] | None:
        """Return what the order of the next pass is drawn from; None if it is not recorded."""
        return self._passes.get((stream.name, stream.passes + 1, iteration))

    def take(self, run: Run, stretch: Stretch) -> None:
        """Note the samples of the iteration that is done."""
        now = run.progress.iter
        line = self.fingerprints.get(now)
        if line is not None and line.get("samples") is not None and not self.only_positions:
            if line["samples"] != hash_of_samples(run):
                raise ReplayError(
                    f"'{self.route.run.path}': the samples of iteration {now} are not those that "
                    "the run had then, by its fingerprint: a sampler depends on the training, or "
                    "the data has changed. hookloop replay --iter repeats the iteration itself."
                )
            self.confirmed.append(now)
        if now >= self.route.first:
            self.samples += _samples_of(run, stretch.start, self.loaders)


def _samples_of(run: Run, start: Line, datasets: Mapping[str, object]) -> Iterable[Sample]:
    data, size = run.train_data, int(cast("int", start.get("ranks") or 1))
    assert data is not None
    count = (data.position - 1) % run.accumulate + 1 if data.position else 0
    if isinstance(data, Mixture):
        named = {one.name: name for name, one in data.streams.items()}
        labels = [[*named.values()]] * count if data.way.is_zipped else [[x] for x in data.labels]
    else:
        named, labels = {data.name: ""}, [[""]] * count
    batches = {}
    for stream in data.parts():
        name = named[stream.name]
        own = sum(label.count(name) for label in labels)
        known = stream.noted_indices(own)
        first = stream.at.batches - own
        batches[name] = iter(known if known is not None else [[first + n] for n in range(own)])
    world = World(size=size, logical=_logical_ranks(start))
    for microbatch, label in enumerate(labels):
        for name in label:
            group = next(batches[name])
            every = list(group) if isinstance(group, Iterable) else [group]
            id_of = getattr(datasets.get(name), "id", None)
            for rank in range(world.logical or size):
                begun, end = Cut(rank, world.logical or size).place(len(every))
                for index in every[begun:end]:
                    plain = index.item() if isinstance(index, np.generic | torch.Tensor) else index
                    known_as = id_of(plain) if callable(id_of) else None
                    yield Sample(run.progress.iter, rank, microbatch, name, plain, known_as)


def _logical_ranks(start: Line) -> int:
    config = start.get("config")
    parallel = config.get("parallel") if isinstance(config, Mapping) else None
    logical = parallel.get("logical") if isinstance(parallel, Mapping) else None
    return logical if isinstance(logical, int) else 0


class _Follow(Hook):
    """Goes to where the checkpoint was, draws the orders that the run drew, and ends the walk."""

    name = "follow_samples"
    priority = Priority.LOWEST
    takes_part_in_training = True
    draws_random_numbers = False

    def __init__(self, walk: _Walk, stretch: Stretch) -> None:
        self._walk = walk
        self._stretch = stretch

    def before_train(self, run: Run) -> None:
        """Go to the position at which this stretch begins."""
        data, state = run.train_data, self._walk.state
        assert data is not None
        for stream in data.parts():
            stream.note_indices(SPARE + 4 * run.accumulate)
            # As on ranks: orders are drawn from generators of their own, when a pass begins.
            stream.share_among(0, 1)
            stream.order.shared = _Recorded(self._walk, stream, run)
        if state is None:
            return
        data.load_state_dict(_without_order(cast("Mapping[str, object]", state["data"])))
        progress = dict(cast("Mapping[str, object]", state["progress"]))
        if (rewind := self._stretch.rewind) is not None:
            progress["left_out"] = tuple(cast("Sequence[int]", rewind.get("left_out") or ()))
        run.progress.load_state_dict(progress)

    def after_train_iter(self, run: Run) -> None:
        """Note the samples."""
        self._walk.take(run, self._stretch)
        if run.progress.iter == self._stretch.last:
            assert run.train_data is not None
            progress = run.progress.state_dict()
            self._walk.state = {"data": run.train_data.state_dict(), "progress": progress}
            run.stop("the samples are found", everywhere=True)


class _Recorded(SharedGenerators):
    """The generators from which a stream drew its passes, as the record of the run has them."""

    def __init__(self, walk: _Walk, stream: Stream, run: Run) -> None:
        self._walk, self._stream, self._run = walk, stream, run
        self._seeded: list[RandomSampler] = []

    @property
    def now(self) -> GeneratorStates:
        """Those of the process; those of a pass as soon as it begins, and restores them."""
        return _AtPass(self)

    @now.setter
    def now(self, now: GeneratorStates) -> None:
        pass  # The record says from where the next order is drawn.

    def of_pass(self) -> GeneratorStates:
        """Return those of the pass that begins now."""
        stream = self._stream
        states = GeneratorStates.now(gpus=False)
        for sampler in self._seeded:
            sampler.generator = None
        self._seeded = []
        if not isinstance(stream.data, DataLoader) or isinstance(
            stream.data.dataset, IterableDataset
        ):
            return states
        known = self._walk.states(stream, self._run.progress.iter)
        names = names_of_origin(stream.data, stream.generators())
        if not names:
            return states
        number = stream.passes + 1
        if known is None:
            if number == 1 and not self._run.progress.iter:
                return states  # Seeded, as the run was.
            raise ReplayError(
                f"'{self._walk.route.run.path}': the record has no line about pass {number} of "
                f"{stream.name}, which began at iteration {self._run.progress.iter}: a pass of "
                "less than ten iterations has one only for torch's random sampler. hookloop replay "
                "--iter repeats the iteration itself."
            )
        left_out = cast("Sequence[str]", known.get("left_out") or ())
        if left_out and number > 1:
            raise ReplayError(
                f"'{self._walk.route.run.path}': the state of {' and '.join(left_out)} was too "
                f"large to be recorded when pass {number} of {stream.name} began. hookloop replay "
                "--iter repeats the iteration itself."
            )
        _set(states, stream, cast("Mapping[str, bytes]", known["states"]))
        if (seeds := known.get("seeds")) is not None:
            self._seeded = _set_seed(stream, cast("Sequence[int]", seeds))
        return states


class _AtPass(GeneratorStates):
    """The generators of the process, until a pass begins from what the record has of it."""

    def __init__(self, recorded: _Recorded) -> None:
        super().__init__(GeneratorStates.now(gpus=False).state)
        self._recorded = recorded

    def restore(self, generators: Sequence[torch.Generator] = (), *, gpus: bool = True) -> None:
        """Let the generators of the process begin the pass."""
        self._recorded.of_pass().restore(generators, gpus=gpus)


def _set(states: GeneratorStates, stream: Stream, known: Mapping[str, bytes]) -> None:
    """Set what is known of the generators."""
    own = stream.generators()
    for name, state in known.items():
        kind, _, number = name.partition(" ")
        if kind in ("python", "numpy"):
            *words, held = struct.unpack("<625Id", state)
            gauss = None if held != held else held
            states.state[kind] = (
                (3, tuple(words), gauss)
                if kind == "python"
                else (
                    "MT19937", torch.tensor(words[:624], dtype=torch.uint32), words[624],
                    int(gauss is not None), gauss or 0.0,
                )
            )  # fmt: skip
            continue
        tensor = torch.frombuffer(bytearray(state), dtype=torch.uint8)
        if kind == "generator":
            own[int(number)].set_state(tensor)
        else:
            states.state[kind] = tensor


def _set_seed(stream: Stream, seeds: Sequence[int]) -> list[RandomSampler]:
    """Let a random sampler draw from the seed that it drew itself then; return those changed."""
    loader = cast("DataLoader[object]", stream.data)
    is_late = loader.persistent_workers and stream.passes > 0
    found = [one for one in samplers_of(loader) if isinstance(one, RandomSampler)]
    for sampler in found:
        sampler.generator = torch.Generator().manual_seed(seeds[0 if is_late else 1])
    return found


def _arguments(make: Make, stretch: Stretch, walk: _Walk, directory: Path) -> Mapping[str, object]:
    given = {**make(directory, stretch.start), **stretch.limits}
    data = given.get("train_data")
    several = isinstance(data, Mapping)
    streams = cast("Mapping[str, object]", data) if several else {"": data}
    ranks = stretch.start.get("ranks")
    without = {
        str(name): _without_samples(one, str(name), walk, ranks) for name, one in streams.items()
    }
    model = torch.nn.Linear(1, 1)
    own = cast("Iterable[Hook]", given.get("hooks") or ())
    hooks = own.values() if isinstance(own, Mapping) else own
    sampler: list[Hook] = [hook for hook in hooks if isinstance(hook, SetSamplerEpoch)]
    if not sampler and given.get("default_hooks") is not False:
        sampler = [SetSamplerEpoch()]
    return {
        **{name: given[name] for name in KEPT if name in given},
        "train_data": without if several else without[""],
        "model": model,
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.0),
        "data": replace(Data.parse(given.get("data")), **_NOT_READ),
        "step": _no_update,
        "device": "cpu",
        "default_hooks": False,
        "hooks": sampler,
    }


def _no_update(run: Run, batch: object) -> object:
    run.skip_update()


def _without_samples(data: object, name: str, walk: _Walk, ranks: object) -> object:
    """Return the same data, of which no sample is loaded."""
    what = f"train_data['{name}']" if name else "train_data"
    dataset = getattr(data, "dataset", data)
    is_iterable = isinstance(dataset, IterableDataset)
    is_divided = any(callable(getattr(one, "shard", None)) for one in (data, dataset))
    is_indexed = isinstance(data, DataLoader) and not is_iterable
    if ranks not in (1, None) and is_divided and not is_indexed:
        raise ReplayError(f"{what} divides itself by shard(), so each rank has its own order.")
    if isinstance(data, Stateful):
        raise ReplayError(
            f"{what} is a {type(data).__name__}, which keeps its position itself and shows no "
            "indices. hookloop replay --iter repeats the iteration itself."
        )
    if hasattr(data, "__next__"):
        raise ReplayError(f"{what} is a {type(data).__name__}, which can be read only once.")
    if not is_indexed:
        walk.only_positions[name] = (
            f"{what} is a {type(data).__name__}"
            f"{' over an iterable data set' if is_iterable else ''}, which has no indices: its "
            "batches are numbered as they come in a pass"
        )
        return data
    loader = cast("DataLoader[object]", data)
    walk.loaders[name] = loader.dataset
    copied = shielded_copy(loader)
    copied.__dict__.update(
        dataset=_Nothing(loader.dataset),
        collate_fn=len,
        num_workers=0,
        prefetch_factor=None,
        worker_init_fn=None,
        multiprocessing_context=None,
        pin_memory=False,
        timeout=0,
        in_order=True,
    )
    return copied


class _Nothing:
    """Has as many samples as a data set, and loads none."""

    def __init__(self, dataset: Any) -> None:  # noqa: ANN401 - any data set
        self._dataset = dataset

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, index: object) -> tuple[int, int]:
        return 0, 0


def _recorded_passes(route: Route) -> dict[tuple[str, int, int], Mapping[str, object]]:
    """Return what is known of each pass, by stream, number and the iteration where it began."""
    found: dict[tuple[str, int, int], Mapping[str, object]] = {}
    known: dict[tuple[str, str], bytes] = {}
    for line in present_branch(read_interventions(route.run)):
        if line["what"] != "pass":
            continue
        name = str(line["data"])
        drawn = cast("Mapping[str, str]", line.get("drawn_from") or {})
        known |= {(name, kind): unpacked(state) for kind, state in drawn.items()}
        same = cast("Sequence[str]", line.get("same") or ())
        states = {kind: known[name, kind] for kind in (*drawn, *same) if (name, kind) in known}
        for number, begun, *seeds in cast("list[list[int]]", line.get("short") or ()):
            found[name, number, begun] = {"states": {}, "seeds": seeds}
        if "number" in line:
            place = (name, int(cast("int", line["number"])), int(cast("int", line["iter"])))
            found[place] = {"states": states, "left_out": line.get("left_out")}
    return found


def _without_order(state: Mapping[str, object]) -> Mapping[str, object]:
    """Leave out what ranks share: the record has it."""
    kept = {name: value for name, value in state.items() if name != "order"}
    if isinstance(streams := kept.get("streams"), Mapping):
        kept["streams"] = {name: _without_order(one) for name, one in streams.items()}
    return kept
