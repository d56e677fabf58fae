"""`AccumulateVariables`: collect variables of all batches of an epoch."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor

from hookloop.data.batch import is_pair
from hookloop.engine.hook import Hook
from hookloop.engine.outputs import output_of
from hookloop.errors import HookError, MetricError, nearest
from hookloop.hooks._state_of_ranks import StateOfRanks
from hookloop.hooks.metrics._parts_of_ranks import Placed, Position, join_ranks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hookloop.engine.run import Phase, Run

Part = Tensor | list[object]
"""A variable of one batch: a tensor, or a list with an entry per sample."""

LIMIT = 100_000_000

_log = logging.getLogger("hookloop")


class AccumulateVariables(StateOfRanks):
    """Collect variables of every batch and pass them to `summarize` when their epoch is done.

    This is the base class of hooks that need all batches at once: subclass it and write
    `summarize`. A variable is ``loss``, ``output``, ``inputs`` or ``targets``, or an entry of the
    batch or of the output if these are mappings. Values stay on their device until the epoch is
    over, and those of an unfinished epoch are kept in checkpoints.

    On many ranks `summarize` is called on each of them, with the values of all: each sample once,
    in the order of the data. A number for a whole batch, such as the loss, is that of the global
    batch: the mean over the ranks, weighted by their samples.

    Args:
        variables: Names of the variables.
        streams: Where to collect: ``"train"``, ``"val"``, ``"test"`` or names of single streams;
            everywhere by default.
        limit: How many numbers to keep per stream; later ones are left out, with a warning.

    Example:
        >>> class CountSamples(AccumulateVariables):
        ...     def summarize(self, run, stream, values):
        ...         run.metrics.put(f"{stream}/samples", sum(map(len, values["targets"])))
        >>> CountSamples(["targets"]).variables
        ('targets',)
    """

    draws_random_numbers = False
    differs_with_logical = True

    def __init__(
        self,
        variables: Sequence[str],
        streams: Sequence[str] | None = None,
        limit: int = LIMIT,
    ) -> None:
        if isinstance(variables, str) or isinstance(streams, str):
            raise HookError(f"{type(self).__name__}: variables and streams are lists of names.")
        self.variables = tuple(dict.fromkeys(variables))  # A repeated name would be kept twice.
        self.streams = None if streams is None else tuple(streams)
        self.limit = limit
        self._parts: dict[str, dict[str, list[Part]]] = {}
        self._places: dict[str, dict[str, list[Position]]] = {}  # Of the parts, on many ranks.
        self._sizes: dict[str, int] = {}

    def summarize(self, run: Run, stream: str, values: Mapping[str, list[Any]]) -> None:
        """Use the values of a whole epoch.

        Args:
            run: The run.
            stream: The prefix of its metrics: ``train``, ``val``, ``val/clean``.
            values: For each variable the values of all batches, in order; on many ranks those of
                each rank's part of a batch, in the order of the ranks.
        """

    def reduce(self, name: str, value: Tensor) -> Tensor:
        """Shrink a value before it is kept; the value itself by default."""
        return value

    def state_dict(self) -> dict[str, object]:
        # Only of the training: a checkpoint is never made in the middle of an evaluation.
        parts = self._parts.get("train", {})
        state: dict[str, object] = {"train": {name: list(kept) for name, kept in parts.items()}}
        if places := self._places.get("train"):
            state["places"] = {name: [list(one) for one in some] for name, some in places.items()}
        return state

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        parts = cast("dict[str, list[Part]]", state["train"])
        self._parts = {"train": {name: list(kept) for name, kept in parts.items()}} if parts else {}
        self._sizes = {"train": sum(map(_size, (p for kept in parts.values() for p in kept)))}
        self._places = {"train": _places_in(state)}

    def divide_state(
        self, states: Sequence[Mapping[str, object]], rank: int, size: int
    ) -> Mapping[str, object]:
        if rank:  # The first rank has all of them.
            return {"train": {}}
        placed = [{"train": _with_places(state)} for state in states]
        train = join_ranks(placed).get("train", {})
        if size == 1:
            return {"train": train}
        return {"train": train, "places": {name: _first(parts) for name, parts in train.items()}}

    def before_train(self, run: Run) -> None:
        check_streams(self, run, self.streams or ())

    def after_backward(self, run: Run) -> None:
        # Not at after_train_iter, which fires once per update and would miss all but the last
        # microbatch of it.
        self._collect(run)

    def after_train_iter(self, run: Run) -> None:
        self._check(run)

    def after_train_epoch(self, run: Run) -> None:
        self._finish(run, "train")

    def before_val_epoch(self, run: Run) -> None:
        self._forget("val")  # An evaluation that failed may have left some of its batches.

    def after_val_iter(self, run: Run) -> None:
        self._collect(run)
        self._check(run)

    def after_val_epoch(self, run: Run, metrics: Mapping[str, float]) -> None:
        self._finish(run, "val")

    def before_test_epoch(self, run: Run) -> None:
        self._forget("test")

    def after_test_iter(self, run: Run) -> None:
        self._collect(run)
        self._check(run)

    def after_test_epoch(self, run: Run, metrics: Mapping[str, float]) -> None:
        self._finish(run, "test")

    def _collect(self, run: Run) -> None:
        if self.streams is not None and not is_selected(run, self.streams):
            return
        stream = stream_of(run)
        # All ranks together keep as much as a single process.
        limit = self.limit // run.world.size
        if self._sizes.get(stream, 0) > limit:  # The warning was already given.
            return
        place = None
        if run.place is not None:
            if not run.place.own:  # Another rank has this sample.
                return
            batch, own = run.place.batch, run.place.own
            place = Position(run.progress.iter, batch, run.world.rank, own)
        parts = self._parts.setdefault(stream, {})
        for name in self.variables:
            found = find_variable(run, name)
            if found is None:
                continue
            # A copy: a later hook, or a loader that reuses its memory, may change it in place.
            part = self.reduce(name, found).clone() if isinstance(found, Tensor) else found
            parts.setdefault(name, []).append(part)
            if place is not None:
                self._places.setdefault(stream, {}).setdefault(name, []).append(place)
            self._sizes[stream] = self._sizes.get(stream, 0) + _size(part)
        if self._sizes.get(stream, 0) > limit:
            _log.warning(
                "%s keeps at most %d numbers of '%s': the rest of the epoch is left out.",
                self.name,
                self.limit,
                stream,
            )

    def _check(self, run: Run) -> None:
        """Reject a variable that the first batch does not have."""
        # Before training nobody knows what batches and outputs will hold.
        parts = self._parts.get(stream_of(run))
        if parts is not None and len(parts) < len(self.variables):
            missing = next(name for name in self.variables if name not in parts)
            existing = list_variables(run)
            raise MetricError(
                f"{self.name}: there is no '{missing}' in the batch or the output of "
                f"'{run.stream}'.{nearest(missing, existing)} There are: {', '.join(existing)}."
            )

    def _finish(self, run: Run, phase: Phase) -> None:
        kept = {name: one for name, one in self._parts.items() if name.partition("/")[0] == phase}
        if not run.world.is_alone:
            kept = join_ranks(run.gather(self._placed(phase))[:: run.world.tensor])
        for stream, parts in kept.items():
            self.summarize(run, stream, parts)
        self._forget(phase)

    def _placed(self, phase: Phase) -> Placed:
        """Return what this rank has collected in a phase, each part with its position."""
        return {
            stream: {
                name: list(zip(self._places[stream][name], parts, strict=True))
                for name, parts in variables.items()
            }
            for stream, variables in self._parts.items()
            if stream.partition("/")[0] == phase
        }

    def _forget(self, phase: Phase) -> None:
        for stream in [name for name in self._sizes if name.partition("/")[0] == phase]:
            del self._sizes[stream]
            self._parts.pop(stream, None)
            self._places.pop(stream, None)


def stream_of(run: Run) -> str:
    """Return the prefix of the current stream's metrics."""
    return run.phase if run.stream == run.phase else f"{run.phase}/{run.stream}"


def is_selected(run: Run, streams: Sequence[str]) -> bool:
    """Return whether the current stream is in a list, by its phase, its name or both."""
    return run.phase in streams or run.stream in streams or stream_of(run) in streams


def check_streams(hook: Hook, run: Run, streams: Sequence[str]) -> None:
    """Reject a stream that the run does not have: the hook would silently do nothing for it."""
    existing = {"train", "val", "test"}
    mixed = getattr(run.train_data, "streams", {})
    for phase, sources in (
        ("train", mixed),
        ("val", run.val_data),
        ("test", run._internals.test_data),
    ):
        for source in filter(None, sources):
            existing |= {source, f"{phase}/{source}"}
    for name in streams:
        if name not in existing:
            listed = ", ".join(sorted(existing))
            raise HookError(
                f"{hook.name}: there is no stream '{name}'.{nearest(name, existing)} "
                f"There are: {listed}."
            )


def find_variable(run: Run, name: str) -> Part | None:
    """Return a variable of the current batch; None if there is none of that name."""
    found: object = None
    if name == "loss":
        found = run.loss
    # The output first: a model that returns an entry of the batch has usually changed it.
    for holder in (run.output, run.batch):
        if found is None and isinstance(holder, Mapping):
            found = holder.get(name)
    if found is None and name == "output":
        found = output_of(run.output)
    if found is None and name in ("inputs", "targets") and is_pair(run.batch):
        found = cast("Sequence[object]", run.batch)[name == "targets"]
    if isinstance(found, Tensor):
        return found.detach()
    if isinstance(found, int | float):
        return torch.tensor(float(found))  # So that every variable can be joined over batches.
    if isinstance(found, np.ndarray):
        return torch.from_numpy(found) if found.dtype.kind in "biuf" else list(found)
    return list(found) if isinstance(found, list | tuple) else None


def list_variables(run: Run) -> list[str]:
    """List the variables of the current batch."""
    names = ["loss"] if run.loss is not None else []
    for holder in (run.output, run.batch):
        if isinstance(holder, Mapping):
            names += [str(name) for name in holder]
    if is_pair(run.batch):
        names += ["inputs", "targets"]
    listed = dict.fromkeys([*names, "output"])
    return [name for name in listed if find_variable(run, name) is not None]


def to_array(part: Part) -> NDArray[np.generic]:
    """Convert a variable of one batch to NumPy; a single number becomes an array of length 1."""
    if isinstance(part, Tensor):
        plain = part.float() if part.dtype == torch.bfloat16 else part  # NumPy has no bfloat16.
        return np.atleast_1d(plain.cpu().numpy())
    return np.asarray(part)


def _places_in(state: Mapping[str, object]) -> dict[str, list[Position]]:
    places = cast("dict[str, list[list[int]]]", state.get("places", {}))
    return {name: [Position(*one) for one in some] for name, some in places.items()}


def _with_places(state: Mapping[str, object]) -> dict[str, list[tuple[Position, Part]]]:
    """Return the parts in a state with their positions, which a single process does not keep."""
    places = _places_in(state)
    return {
        name: list(zip(places.get(name) or map(Position._make, _first(parts)), parts, strict=True))
        for name, parts in cast("dict[str, list[Part]]", state["train"]).items()
    }


def _first(parts: Sequence[Part]) -> list[list[int]]:
    """Return positions of the first rank, before all that are still to come."""
    return [[0, number, 0, 1] for number in range(len(parts))]


def _size(part: Part) -> int:
    return part.numel() if isinstance(part, Tensor) else len(part)
