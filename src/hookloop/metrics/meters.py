"""Metrics of an evaluation: a function of one batch, or an object that accumulates.

A function is averaged over samples, so that a short last batch has less weight. An object with
``update``, ``compute`` and ``reset`` (torchmetrics) is computed once, at the end.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
from torch import Tensor

from hookloop.errors import MetricError
from hookloop.metrics.series import Series, Value
from hookloop.metrics.weighted import Weight, WeightedMean
from hookloop.parallel.ranks import Ranks
from hookloop.parallel.tree import Node, add_up
from hookloop.parallel.world import World

MetricFunction = Callable[[Any, Any], Value]


@runtime_checkable
class Accumulating(Protocol):
    """The interface of torchmetrics objects."""

    def update(self, output: Any, targets: Any, /) -> None:  # noqa: ANN401 - the user's
        """Add one batch."""

    def compute(self) -> object:
        """Return a scalar, or a mapping from names to scalars."""

    def reset(self) -> None:
        """Forget all batches."""


Metric = MetricFunction | Accumulating


class Meters:
    """The metrics of one stream, from its first batch to its last.

    Args:
        metrics: The metrics by name.
        world: The ranks that evaluate parts of the stream.
    """

    def __init__(self, metrics: Mapping[str, Metric], world: World | None = None) -> None:
        self._metrics = metrics
        self._world = world or World()
        # Whether metrics of torchmetrics may not combine themselves over all processes.
        self._is_apart = self._world.logical > 0 or self._world.tensor > 1
        self._leaves = self._world.leaves if self._world.logical else range(1)
        self._of_leaves: list[dict[str, Series | WeightedMean]] = [{} for _ in self._leaves]
        self._means: dict[str, Series | WeightedMean] = self._of_leaves[0]
        self._place = 0
        # What metrics of the user's own have seen, for the other ranks; None in one process.
        self._batches: list[tuple[str, object, object, tuple[int, int]]] | None = (
            None if self._world.is_alone else []
        )
        self._count = 0
        for metric in metrics.values():
            # The user's object may hold batches of an earlier evaluation.
            if isinstance(metric, Accumulating):
                metric.reset()

    @property
    def part(self) -> int:
        """Which part of a batch comes now: a run may be cut into logical ranks."""
        return self._place

    @part.setter
    def part(self, place: int) -> None:
        self._place, self._means = place, self._of_leaves[place]
        self._count += place == 0

    def update(self, output: object, targets: object, samples: int) -> None:
        """Add the output and targets of one batch."""
        # By rank, or in the order of the data, which does not depend on the number of processes.
        at = (self._count, self._leaves[self._place]) if self._world.logical else (0, 0)
        keeps_all = self._is_apart
        for name, metric in self._metrics.items():
            try:
                if not isinstance(metric, Accumulating):
                    self.add(name, metric(output, targets), samples)
                    continue
                if self._batches is None or not keeps_all:
                    metric.update(output, targets)
                if self._batches is not None and (keeps_all or not _syncs_itself(metric)):
                    self._batches.append((name, _on_cpu(output), _on_cpu(targets), at))
            except Exception as error:
                if not isinstance(error, MetricError):  # Which names it.
                    error.add_note(f"in the metric '{name}'")
                raise

    def add(self, name: str, value: object, weight: Weight) -> None:
        """Add a number of one batch, to be averaged by weight: samples, tokens or pixels."""
        if isinstance(value, Tensor):
            if value.numel() != 1:
                raise MetricError(
                    f"The metric '{name}' returned a tensor of shape {tuple(value.shape)}: "
                    "return one number per batch."
                )
            value = value.detach().reshape(())  # Otherwise it would keep the graph in memory.
        elif isinstance(value, int | float | np.integer | np.floating):
            value = float(value)
        else:
            raise MetricError(
                f"The metric '{name}' returned {value!r}: return one number per batch."
            )
        mean = self._means.get(name)
        if mean is None:
            # Only a weight on a device needs the sums of `WeightedMean`; a series is cheaper.
            mean = self._means[name] = WeightedMean() if isinstance(weight, Tensor) else Series()
        if isinstance(mean, Series):
            mean.add(value, float(weight))
        else:
            mean.add(value, weight)

    def combine(self, ranks: Ranks) -> None:
        """Make the means those of all ranks, summed in double precision; nothing to do alone.

        torchmetrics objects combine themselves when they are computed. Any other object gets the
        batches of all ranks, in the order of the ranks.
        """
        if ranks.world.is_alone and not self._world.logical:
            return
        own = [{name: mean.sums() for name, mean in of.items()} for of in self._of_leaves]
        # Processes that split layers have seen the same batches.
        of_ranks = ranks.gather((own, self._batches))[:: self._world.tensor]
        leaves = [sums for of_rank, _ in of_ranks for sums in of_rank]
        self._means = {}
        for name in dict.fromkeys(name for sums in leaves for name in sums):
            of_name = [sums.get(name, (0.0, 0.0)) for sums in leaves]
            combined = self._means[name] = WeightedMean()
            if self._world.logical:
                of_name = [_along_tree(of_name)]
            for total, weight in of_name:
                combined.add(total / weight if weight else 0.0, weight)
        seen = [batch for _, batches in of_ranks for batch in batches or ()]
        if self._world.logical:
            seen.sort(key=lambda batch: batch[3])
        for name in dict.fromkeys(batch[0] for batch in seen):
            metric = cast("Accumulating", self._metrics[name])
            metric.reset()
            for of, output, targets, _ in seen:
                if of == name:
                    metric.update(output, targets)

    def compute(self) -> dict[str, Value]:
        """Return every metric of the stream; tensors are not read from their device."""
        means: dict[str, Value] = {name: mean.mean() for name, mean in self._means.items()}
        results = {name: mean for name, mean in means.items() if self._is_asked_for(name)}
        for name, metric in self._metrics.items():
            if isinstance(metric, Accumulating):
                results |= _named(name, self._computed(metric))
        return results | means  # What a step adds comes last: "the first metric" is never that.

    def _is_asked_for(self, name: str) -> bool:
        return name in self._metrics or name.endswith("loss")

    def _computed(self, metric: Accumulating) -> object:
        with warnings.catch_warnings():
            if self._batches is not None:  # A rank may have had no part of the data.
                warnings.filterwarnings("ignore", message="The ``compute`` method of metric")
            if self._batches is None or not self._is_apart:
                return metric.compute()
            with _not_combining(metric):  # It has seen the batches of all ranks.
                return metric.compute()


def is_collection(metrics: object) -> bool:
    """Return whether something is a collection of torchmetrics: one object that names its metrics.

    >>> is_collection({"accuracy": len})
    False
    """
    return (
        isinstance(metrics, Accumulating)
        and not isinstance(metrics, Mapping | type)
        and (hasattr(metrics, "keys") and hasattr(metrics, "values"))
    )


def by_name(metrics: Mapping[str, Metric] | Accumulating | None) -> Mapping[str, Metric]:
    """Return metrics by their names; a collection, which has names of its own, under none."""
    if isinstance(metrics, Accumulating) and not isinstance(metrics, Mapping):
        return {"": metrics}
    return metrics or {}


def _syncs_itself(metric: object) -> bool:
    """Return whether a metric is one of torchmetrics, which combine themselves over ranks."""
    if is_collection(metric):
        return all(map(_syncs_itself, cast("Any", metric).values()))
    return hasattr(metric, "dist_sync_on_step") or hasattr(metric, "sync_context")


@contextmanager
def _not_combining(metric: object) -> Iterator[None]:
    """Let a metric of torchmetrics compute from what it has seen by itself."""
    inner = list(cast("Any", metric).values()) if is_collection(metric) else [metric]
    asks = "distributed_available_fn"  # Whether there are other ranks to combine with.
    before = [(one, getattr(one, asks)) for one in inner if hasattr(one, asks)]
    try:
        for one, _ in before:
            setattr(one, asks, lambda: False)
        yield
    finally:
        for one, ask in before:
            setattr(one, asks, ask)


def _along_tree(sums: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Add the sums of logical ranks in the order of their tree."""
    values = {Node(leaf, 1): one for leaf, one in enumerate(sums)}
    return add_up(values, len(sums), lambda one, other: (one[0] + other[0], one[1] + other[1]))


def _on_cpu(value: object) -> object:
    """Return outputs or targets in a form that can be sent to another process."""
    if isinstance(value, Tensor):
        return value.detach().cpu()
    if isinstance(value, Mapping):
        return {key: _on_cpu(part) for key, part in value.items()}
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return type(value)(_on_cpu(part) for part in value)
    return value


def _named(name: str, result: object) -> dict[str, Value]:
    """Give each number of a metric a name; a metric without a name uses its own keys."""
    if isinstance(result, Mapping):
        prefix = f"{name}/" if name else ""
        return {f"{prefix}{key}": cast("Value", value) for key, value in result.items()}
    if isinstance(result, Tensor) and result.numel() != 1:
        raise MetricError(
            f"The metric '{name}' computed a tensor of shape {tuple(result.shape)}: choose an "
            "average that yields one number, for example average='macro'."
        )
    return {name: cast("Value", result)}
