"""`AccumulateVariables`: what a whole epoch brought, batch by batch."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor

from hookloop.core.hook import Hook
from hookloop.core.update import output_of
from hookloop.data.batch import is_pair
from hookloop.errors import HookError, MetricError, nearest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hookloop.core.run import Phase, Run

Part = Tensor | list[object]
"""A variable of one batch: a tensor, or a list with an entry per sample."""

LIMIT = 100_000_000

_log = logging.getLogger("hookloop")


class AccumulateVariables(Hook):
    """Collect variables of every batch and hand them over when their epoch is done.

    The base of hooks that need all batches at once: subclass it and write `summarize`. A variable
    is ``loss``, ``output``, ``inputs`` or ``targets``, or an entry of the batch or of the output
    where these are mappings. Values stay on their device until the epoch is over, and those of an
    unfinished epoch are kept in checkpoints.

    Args:
        variables: Their names.
        streams: Where to collect: ``"train"``, ``"val"``, ``"test"`` or names of single streams;
            everywhere when not given.
        limit: How many numbers to keep of one stream; what comes after is left out, with a warning.

    Example:
        >>> class CountSamples(AccumulateVariables):
        ...     def summarize(self, run, stream, values):
        ...         run.metrics.put(f"{stream}/samples", sum(map(len, values["targets"])))
        >>> CountSamples(["targets"]).variables
        ('targets',)
    """

    draws_random_numbers = False

    def __init__(
        self,
        variables: Sequence[str],
        streams: Sequence[str] | None = None,
        limit: int = LIMIT,
    ) -> None:
        if isinstance(variables, str) or isinstance(streams, str):
            raise HookError(f"{type(self).__name__}: variables and streams are lists of names.")
        self.variables = tuple(dict.fromkeys(variables))
        self.streams = None if streams is None else tuple(streams)
        self.limit = limit
        self._parts: dict[str, dict[str, list[Part]]] = {}
        self._sizes: dict[str, int] = {}

    def summarize(self, run: Run, stream: str, values: Mapping[str, list[Any]]) -> None:
        """Use what an epoch brought.

        Args:
            run: The run.
            stream: The prefix of its metrics: ``train``, ``val``, ``val/clean``.
            values: For each variable what each batch had.
        """

    def reduce(self, name: str, value: Tensor) -> Tensor:
        """Shrink a value before it is kept; the value itself by default."""
        return value

    def state_dict(self) -> dict[str, object]:
        # Evaluations are never cut by a checkpoint.
        parts = self._parts.get("train", {})
        return {"train": {name: list(kept) for name, kept in parts.items()}}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        parts = cast("dict[str, list[Part]]", state["train"])
        self._parts = {"train": {name: list(kept) for name, kept in parts.items()}} if parts else {}
        self._sizes = {"train": sum(map(_size, (p for kept in parts.values() for p in kept)))}

    def before_train(self, run: Run) -> None:
        check_streams(self, run, self.streams or ())

    def after_backward(self, run: Run) -> None:  # Per microbatch, so that none is missed.
        self._collect(run)

    def after_train_iter(self, run: Run) -> None:
        self._check(run)

    def after_train_epoch(self, run: Run) -> None:
        self._finish(run, "train")

    def before_val_epoch(self, run: Run) -> None:
        self._forget("val")

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
        if self.streams is not None and not is_among(run, self.streams):
            return
        stream = stream_of(run)
        if self._sizes.get(stream, 0) > self.limit:
            return
        parts = self._parts.setdefault(stream, {})
        for name in self.variables:
            found = find_variable(run, name)
            if found is None:
                continue
            part = self.reduce(name, found).clone() if isinstance(found, Tensor) else found
            parts.setdefault(name, []).append(part)
            self._sizes[stream] = self._sizes.get(stream, 0) + _size(part)
        if self._sizes.get(stream, 0) > self.limit:
            _log.warning(
                "%s keeps no more than %d numbers of '%s': the rest of the epoch is left out.",
                self.name,
                self.limit,
                stream,
            )

    def _check(self, run: Run) -> None:
        """Refuse, after the first batch, a variable that is nowhere."""
        parts = self._parts.get(stream_of(run))
        if parts is not None and len(parts) < len(self.variables):
            missing = next(name for name in self.variables if name not in parts)
            known = known_variables(run)
            raise MetricError(
                f"{self.name}: there is no '{missing}' in the batch or the output of "
                f"'{run.stream}'.{nearest(missing, known)} There are: {', '.join(known)}."
            )

    def _finish(self, run: Run, phase: Phase) -> None:
        for stream in [name for name in self._parts if name.partition("/")[0] == phase]:
            self.summarize(run, stream, self._parts[stream])
        self._forget(phase)

    def _forget(self, phase: Phase) -> None:
        for stream in [name for name in self._sizes if name.partition("/")[0] == phase]:
            del self._sizes[stream]
            self._parts.pop(stream, None)


def stream_of(run: Run) -> str:
    """Return the prefix that metrics of the stream at hand have."""
    return run.phase if run.stream == run.phase else f"{run.phase}/{run.stream}"


def is_among(run: Run, streams: Sequence[str]) -> bool:
    """Tell whether the stream at hand is meant: by its phase, its name or both."""
    return run.phase in streams or run.stream in streams or stream_of(run) in streams


def check_streams(hook: Hook, run: Run, streams: Sequence[str]) -> None:
    """Refuse a stream that the run does not have: nothing would ever be done for it."""
    known = {"train", "val", "test"}
    for phase, sources in (("val", run.val_data), ("test", run.test_data)):
        known |= {one for name in sources if name for one in (name, f"{phase}/{name}")}
    for name in streams:
        if name not in known:
            listed = ", ".join(sorted(known))
            raise HookError(
                f"{hook.name}: there is no stream '{name}'.{nearest(name, known)} "
                f"There are: {listed}."
            )


def find_variable(run: Run, name: str) -> Part | None:
    """Look a variable of the batch at hand up; None when there is none of that name."""
    found: object = None
    if name == "loss":
        found = run.loss
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
        return torch.tensor(float(found))
    if isinstance(found, np.ndarray):
        return torch.from_numpy(found) if found.dtype.kind in "biuf" else list(found)
    return list(found) if isinstance(found, list | tuple) else None


def known_variables(run: Run) -> list[str]:
    """List the variables that the batch at hand has."""
    names = ["loss"] if run.loss is not None else []
    for holder in (run.output, run.batch):
        if isinstance(holder, Mapping):
            names += [str(name) for name in holder]
    if is_pair(run.batch):
        names += ["inputs", "targets"]
    listed = dict.fromkeys([*names, "output"])
    return [name for name in listed if find_variable(run, name) is not None]


def to_array(part: Part) -> NDArray[np.generic]:
    """Bring a variable of one batch to NumPy; a number becomes an array of one."""
    if isinstance(part, Tensor):
        plain = part.float() if part.dtype == torch.bfloat16 else part
        return np.atleast_1d(plain.cpu().numpy())
    return np.asarray(part)


def _size(part: Part) -> int:
    return part.numel() if isinstance(part, Tensor) else len(part)
