"""`ComputeStats`: statistics of variables over each epoch."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from hookloop.dialects.emloop.hooks.accumulate_variables import AccumulateVariables
from hookloop.dialects.emloop.types import EpochData
from hookloop.errors import nearest

Wanted = str | Mapping[str, Sequence[str]]


class ComputeStats(AccumulateVariables):
    """Write ``epoch_data[stream][variable][statistic]`` after each epoch.

    Args:
        variables: Names, for the mean; or mappings from names to lists of statistics: any function
            of NumPy, ``nancount`` or ``nanfraction``.
        kwargs: See `AbstractHook`.
    """

    EXTRA_AGGREGATIONS = frozenset({"nanfraction", "nancount"})

    def __init__(self, variables: Iterable[Wanted] | Wanted, **kwargs: object) -> None:
        given = [variables] if isinstance(variables, Mapping) else list(variables)
        self._variable_aggregations: dict[str, Sequence[str]] = {}
        for one in given:
            self._variable_aggregations |= {one: ["mean"]} if isinstance(one, str) else dict(one)
        for name, some in self._variable_aggregations.items():
            for aggregation in some:
                _check(aggregation, name)
        super().__init__(variables=list(self._variable_aggregations), **kwargs)

    @property
    def writes_epoch_data(self) -> tuple[str, ...]:
        """What other hooks find in the epoch's data."""
        return tuple(self._variable_aggregations)

    def after_epoch(self, epoch_data: EpochData, **kwargs: Any) -> None:  # noqa: ANN401 - open
        for stream in epoch_data:
            for name, some in self._variable_aggregations.items():
                values = self._accumulator[stream][name]
                epoch_data[stream][name] = OrderedDict(
                    (aggregation, _compute(aggregation, values)) for aggregation in some
                )
        super().after_epoch(epoch_data=epoch_data, **kwargs)


def _check(aggregation: str, name: str) -> None:
    if aggregation not in ComputeStats.EXTRA_AGGREGATIONS and not hasattr(np, aggregation):
        hint = nearest(aggregation, ["mean", "median", "std", "var", "min", "max", "nanmean"])
        raise ValueError(
            f"'{aggregation}', wanted for '{name}', is no function of NumPy, nancount or "
            f"nanfraction.{hint}"
        )


def _compute(aggregation: str, values: Sequence[object]) -> object:
    if aggregation in ComputeStats.EXTRA_AGGREGATIONS:
        count = int(np.isnan(np.asarray(values, dtype=float)).sum())
        return count if aggregation == "nancount" else count / len(values)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # The mean of no batch is NaN.
        return getattr(np, aggregation)(values)
