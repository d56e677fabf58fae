"""`ComputeStats`: statistics of batch variables over an epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from hookloop.core.hook import Hook
from hookloop.errors import HookError, MetricError

if TYPE_CHECKING:
    from hookloop.core.run import Run


class ComputeStats(Hook):
    """Collect variables of every batch and put their statistics into the metric store at epoch end.

    A variable is the ``loss``, or an entry of the batch or of the output where these are mappings.
    The names are ``<stream>/<variable>/<statistic>``, for example ``train/loss/max``.

    Args:
        variables: Names, for their mean, or a mapping from names to lists of NumPy functions.

    Example:
        >>> ComputeStats(["loss"]).writes
        ('*/loss/mean',)
        >>> ComputeStats({"loss": ["min", "max"]}).writes
        ('*/loss/min', '*/loss/max')
    """

    def __init__(
        self, variables: Sequence[str | Mapping[str, Sequence[str]]] | Mapping[str, Sequence[str]]
    ) -> None:
        self.variables = _parse(variables)
        self.writes = tuple(
            f"*/{name}/{s}" for name, stats in self.variables.items() for s in stats
        )
        self._values: dict[str, dict[str, list[Tensor]]] = {}

    def before_epoch(self, run: Run) -> None:
        self._values = {}

    def after_train_iter(self, run: Run) -> None:
        self._collect(run)

    def after_val_iter(self, run: Run) -> None:
        self._collect(run)

    def after_epoch(self, run: Run) -> None:
        for stream, variables in self._values.items():
            for name, values in variables.items():
                numbers = np.concatenate([value.double().cpu().numpy().ravel() for value in values])
                for statistic in self.variables[name]:
                    run.metrics.put(f"{stream}/{name}/{statistic}", getattr(np, statistic)(numbers))

    def _collect(self, run: Run) -> None:
        collected = self._values.setdefault(run.stream, {})
        for name in self.variables:
            collected.setdefault(name, []).append(_variable(run, name))


def _parse(variables: object) -> dict[str, tuple[str, ...]]:
    entries = [variables] if isinstance(variables, Mapping) else list(variables)  # type: ignore[call-overload]
    parsed: dict[str, tuple[str, ...]] = {}
    for entry in entries:
        parsed |= (
            {str(name): tuple(stats) for name, stats in entry.items()}
            if isinstance(entry, Mapping)
            else {str(entry): ("mean",)}
        )
    for name, statistics in parsed.items():
        for statistic in statistics:
            if not callable(getattr(np, statistic, None)):
                raise HookError(f"ComputeStats: NumPy has no '{statistic}', wanted for '{name}'.")
    return parsed


def _variable(run: Run, name: str) -> Tensor:
    if name == "loss" and run.loss is not None:
        return run.loss.detach()
    for holder in (run.output, run.batch):
        if isinstance(holder, Mapping) and isinstance(holder.get(name), Tensor):
            found: Tensor = holder[name]
            return found.detach()
    raise MetricError(
        f"ComputeStats: there is no '{name}' in the batch or the output of '{run.stream}'."
    )
