"""`ComputeStats`: statistics of batch variables over an epoch."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from hookloop.errors import HookError, MetricError, nearest
from hookloop.hooks.metrics.accumulate_variables import AccumulateVariables, Part, to_array

if TYPE_CHECKING:
    from hookloop.engine.run import Run

Statistic = Callable[[object], float]

OWN: dict[str, Statistic] = {
    "nancount": lambda values: float(np.isnan(values).sum()),  # type: ignore[call-overload]
    "nanfraction": lambda values: float(np.isnan(values).mean()),  # type: ignore[call-overload]
}
COMMON = ("mean", "std", "var", "min", "max", "median", "sum", "nanmean", "nanmin", "nanmax")


class ComputeStats(AccumulateVariables):
    """Put statistics of batch variables into the metric store when their epoch is done.

    The names are ``<stream>/<variable>/<statistic>``, for example ``train/loss/max``. See
    `AccumulateVariables` for what a variable can be.

    Args:
        variables: Names, for their mean; or a mapping from names to lists of statistics: any NumPy
            function that turns an array into one number, ``nancount`` or ``nanfraction``.
        streams: Where: ``"train"``, ``"val"``, ``"test"`` or names of single streams; everywhere
            by default.

    Example:
        >>> ComputeStats(["loss"]).writes
        ('*/loss/mean',)
        >>> ComputeStats({"loss": ["min", "max"]}).writes
        ('*/loss/min', '*/loss/max')
    """

    draws_random_numbers = False

    def __init__(
        self,
        variables: Sequence[str | Mapping[str, Sequence[str]]] | Mapping[str, Sequence[str]],
        streams: Sequence[str] | None = None,
    ) -> None:
        self.statistics = _parse(variables)  # First, because it knows the names of the variables.
        super().__init__(list(self.statistics), streams)
        self.writes = tuple(
            f"*/{name}/{statistic}" for name, some in self.statistics.items() for statistic in some
        )

    def summarize(self, run: Run, stream: str, values: Mapping[str, list[Part]]) -> None:
        for name, statistics in self.statistics.items():
            numbers = np.concatenate([to_array(part).ravel() for part in values[name]])
            if numbers.dtype.kind not in "biuf":
                raise MetricError(
                    f"{self.name}: '{name}' does not hold numbers, but {numbers.dtype}."
                )
            # In double precision: a mean over a long epoch of half-precision numbers loses digits.
            numbers = numbers.astype(np.float64)
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                # nanmean and others warn when all values are NaN; the result, NaN, shows it.
                warnings.simplefilter("ignore", RuntimeWarning)
                for statistic, function in statistics.items():
                    run.metrics.put(f"{stream}/{name}/{statistic}", function(numbers))


def _parse(variables: object) -> dict[str, dict[str, Statistic]]:
    if isinstance(variables, str):
        raise HookError(f"ComputeStats: variables is a list, write variables=['{variables}'].")
    entries = (
        [variables] if isinstance(variables, Mapping) else list(cast("list[object]", variables))
    )
    wanted: dict[str, Sequence[str]] = {}
    for entry in entries:
        wanted |= entry if isinstance(entry, Mapping) else {str(entry): ("mean",)}
    if not wanted:
        raise HookError("ComputeStats: variables is empty, name at least one: ['loss'].")
    return {
        str(name): {
            str(statistic): _statistic(str(statistic), str(name))
            for statistic in _listed(statistics)
        }
        for name, statistics in wanted.items()
    }


def _listed(statistics: Sequence[str] | str) -> Sequence[str]:
    return [statistics] if isinstance(statistics, str) else statistics


def _statistic(name: str, variable: str) -> Statistic:
    if name in OWN:
        return OWN[name]
    function = getattr(np, name, None)
    if callable(function):
        # NumPy does not mark the functions that reduce an array, so the function is tried out.
        try:
            result = function(np.array([1.0, 2.0]))
        except (TypeError, ValueError):
            result = None
        if np.ndim(result) == 0 and isinstance(result, int | float | np.number | np.bool_):
            return cast("Statistic", function)
    hint = nearest(name, [*COMMON, *OWN]) or f" Some that are: {', '.join(COMMON)}."
    raise HookError(
        f"ComputeStats: '{name}', requested for '{variable}', is not a NumPy function that turns "
        f"an array into one number.{hint}"
    )
