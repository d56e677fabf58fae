"""`EpochData`: what emloop's hooks pass to each other, and its exchange with the metric store."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

import numpy as np
from torch import Tensor

from hookloop.dialects import (
    KNOWN_HOOKS,
    Adapter,
    Companion,
    matches,
    plan_of,
)
from hookloop.errors import nearest

if TYPE_CHECKING:
    from hookloop import Run
    from hookloop.dialects import MetricStore

Variables = OrderedDict[str, object]

_log = logging.getLogger("hookloop")


class NotEvaluatedError(KeyError):
    """Raised for a stream of the run that this epoch did not read."""


class EpochData(OrderedDict[str, Variables]):
    """Variables by stream; the only validation stream is found as ``valid`` and ``val``, too.

    Attributes:
        aliases: Further names of streams. They are found, but not listed.
        known: The streams of the run, those that this epoch did not read, too.
        evaluated: The metrics that the engine computes in evaluations only.

    >>> data = EpochData({"dev": OrderedDict(loss=0.5)})
    >>> data.aliases = {"valid": "dev"}
    >>> data["valid"]["loss"], "valid" in data, list(data)
    (0.5, True, ['dev'])
    """

    aliases: Mapping[str, str] = MappingProxyType({})
    known: Collection[str] = ()
    evaluated: Collection[str] = ()

    def __missing__(self, stream: str) -> Variables:
        meant = self.aliases.get(stream, stream)
        if dict.__contains__(self, meant):
            return self[meant]
        listed = ", ".join(self) or "none"
        if meant in self.known:
            raise NotEvaluatedError(
                f"the stream '{stream}' was not evaluated in this epoch, only: {listed}. "
                "val_every says when it is; a hook can check that a stream is in epoch_data."
            )
        raise KeyError(
            f"there is no stream '{stream}' in this epoch.{nearest(stream, self)} "
            f"There are: {listed}."
        )

    def __contains__(self, stream: object) -> bool:
        return dict.__contains__(self, stream) or dict.__contains__(
            self, self.aliases.get(cast("str", stream))
        )

    def leaves_out(self, stream: str, name: str) -> bool:
        """Return whether this epoch need not have a variable: a metric of evaluations only."""
        return name in self.evaluated and name not in self.get(stream, ())  # type: ignore[operator]

    # `dict.get` calls neither of the two methods above.
    def get(self, stream: str, default: object = None) -> object:  # type: ignore[override]
        """Return the variables of a stream, or the default."""
        return self[stream] if stream in self else default  # noqa: SIM401 - it would call itself


class Exchange:
    """Carries results from the metric store to the epoch's data, and back.

    ``val/loss/mean`` is ``epoch_data["valid"]["loss"]["mean"]``. The engine's own numbers, the loss
    and the times, are not carried over: in emloop only hooks put something there.
    """

    def __init__(self) -> None:
        self._known: dict[str, float] = {}
        self._declared: list[str] = []
        self._engine: list[str] = []
        self._reported: set[str] = set()

    def prepare(self, run: Run) -> None:
        """Find out which metrics belong to hooks, and which to the engine."""
        native = [hook for hook in run.hooks if not isinstance(hook, Adapter | Companion)]
        defaults = [hook for hook in native if hook.name in KNOWN_HOOKS]
        self._declared = [name for hook in native if hook not in defaults for name in hook.writes]
        self._engine = [name for hook in defaults for name in hook.writes]
        # What the engine computes in training it computes in evaluations as well. What it computes
        # in evaluations only are the metrics that the user gave.
        self._engine += [name for name in plan_of(run).produced if name.startswith("train/")]

    def begin(self) -> None:
        """Begin a new epoch."""
        self._known = {}

    def take_in(self, metrics: MetricStore, data: EpochData, prefixes: Mapping[str, str]) -> None:
        """Add to the epoch's data what native hooks and metrics have put since the last call."""
        for stream, name, full, value in self._results(metrics, data, prefixes):
            if self._known.get(full) == value:
                continue
            self._known[full] = value
            variable, slash, statistic = name.partition("/")
            if not slash:
                # Where statistics exist under the same name, these say more.
                if not isinstance(data[stream].get(variable), dict):
                    data[stream][variable] = value
                continue
            kept = data[stream].get(variable)
            if not isinstance(kept, dict):
                kept = data[stream][variable] = OrderedDict()
            kept[statistic] = value

    def hand_over(
        self, metrics: MetricStore, data: EpochData, prefixes: Mapping[str, str], hook: str
    ) -> None:
        """Put into the metric store what a hook has added to the epoch's data."""
        for stream, variables in data.items():
            for name, value in _numbers(variables):
                full = f"{prefixes.get(stream, stream)}/{name}"
                known = self._known.get(full)
                # NaN is not equal to itself.
                if known == value or (known is not None and known != known and value != value):
                    continue
                if known is None and full in metrics and metrics.series(full).is_current:
                    self._report(hook, name, stream, full)
                    continue
                self._known[full] = value
                metrics.replace(full, value)

    def _results(
        self, metrics: MetricStore, data: Iterable[str], prefixes: Mapping[str, str]
    ) -> Iterator[tuple[str, str, str, float]]:
        """Yield stream, name within it, full name and value of what belongs to the epoch's data."""
        streams: dict[str, str] = {}
        for stream in data:
            if prefix := prefixes.get(stream):
                streams[f"{prefix}/"] = stream
                # Of a stream 'val', hooks write val/..., and the engine val/val/...
                streams.setdefault(f"{prefix}/{prefix}/", stream)
        # The longest first: "val/clean/" before "val/".
        ordered = sorted(streams, key=len, reverse=True)
        for phase in dict.fromkeys(prefix.partition("/")[0] for prefix in streams):
            for full, value in metrics.stream(phase).items():
                prefix = next((one for one in ordered if full.startswith(one)), None)
                if prefix is not None and self._is_result(full, full.removeprefix(prefix)):
                    yield streams[prefix], full.removeprefix(prefix), full, value

    def _is_result(self, full: str, name: str) -> bool:
        if any(matches(full, written) for written in self._declared):
            return True
        if full.startswith("train/"):
            return False
        return f"train/{name}" not in self._engine

    def _report(self, hook: str, name: str, stream: str, full: str) -> None:
        if full not in self._reported:
            self._reported.add(full)
            _log.warning(
                "The hook '%s' puts '%s' into the epoch's data of '%s'. '%s' is a metric of the "
                "engine, which keeps its own value: other hooks of emloop see the hook's, native "
                "hooks and writers do not.",
                hook,
                name,
                stream,
                full,
            )


def _numbers(variables: Mapping[str, object]) -> Iterator[tuple[str, float]]:
    """Yield the numbers among the variables of a stream, and those of their statistics."""
    for name, value in variables.items():
        inside = value.items() if isinstance(value, Mapping) else (("", value),)
        for statistic, one in inside:
            number = _number(one)
            if number is not None:
                yield f"{name}/{statistic}" if statistic != "" else str(name), number


def _number(value: object) -> float | None:
    if isinstance(value, bool | int | float | np.number | np.bool_):
        return float(value)
    if isinstance(value, np.ndarray | Tensor):
        is_number = value.size == 1 if isinstance(value, np.ndarray) else value.numel() == 1
        return float(value.reshape(()).item()) if is_number and _is_numeric(value) else None
    return None


def _is_numeric(value: np.ndarray[tuple[int, ...], np.dtype[np.generic]] | Tensor) -> bool:
    return isinstance(value, Tensor) or value.dtype.kind in "biuf"
