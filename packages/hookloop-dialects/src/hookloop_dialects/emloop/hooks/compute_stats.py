"""`ComputeStats`: statistics of variables over each epoch."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from hookloop.errors import nearest
from hookloop_dialects.emloop.hooks.accumulate_variables import AccumulateVariables
from hookloop_dialects.emloop.types import EpochData

Wanted = str | Mapping[str, Sequence[str]]


class ComputeStats(AccumulateVariables):
    """Write ``epoch_data[stream][variable][statistic]`` after each epoch.

    Args:
        variables: Names, which get the mean, or mappings from names to lists of statistics. A
            statistic is any function of NumPy, ``nancount`` or ``nanfraction``.
        kwargs: See `AbstractHook`.
    """

    EXTRA_AGGREGATIONS = frozenset({"nanfraction", "nancount"})

    def __init__(self, variables: Iterable[Wanted] | Wanted, **kwargs: object) -> None:
        entries = [variables] if isinstance(variables, Mapping) else list(variables)
        self._variable_aggregations: dict[str, Sequence[str]] = {}
        for entry in entries:
            wanted = {entry: ["mean"]} if isinstance(entry, str) else dict(entry)
            self._variable_aggregations |= wanted
        # Here, because after the first epoch a misspelled name would cost that epoch.
        for name, aggregations in self._variable_aggregations.items():
            for aggregation in aggregations:
                self._raise_check_aggregation(aggregation, name)
        super().__init__(variables=list(self._variable_aggregations), **kwargs)

    @property
    def writes_epoch_data(self) -> tuple[str, ...]:
        """The variables that it adds to the epoch's data."""
        return tuple(self._variable_aggregations)

    # These three are methods of emloop's class, which subclasses call and override.

    @staticmethod
    def _raise_check_aggregation(aggregation: str, name: str = "a variable") -> None:
        if aggregation not in ComputeStats.EXTRA_AGGREGATIONS and not hasattr(np, aggregation):
            hint = nearest(aggregation, ["mean", "median", "std", "var", "min", "max", "nanmean"])
            raise ValueError(
                f"'{aggregation}', wanted for '{name}', is not a function of NumPy, nancount or "
                f"nanfraction.{hint}"
            )

    @staticmethod
    def _compute_aggregation(aggregation: str, data: Sequence[object]) -> object:
        if aggregation in ComputeStats.EXTRA_AGGREGATIONS:
            count = int(np.isnan(np.asarray(data, dtype=float)).sum())
            return count if aggregation == "nancount" else count / len(data)
        with warnings.catch_warnings():
            # A stream without batches has the mean NaN, as in emloop. NumPy warns about it.
            warnings.simplefilter("ignore", RuntimeWarning)
            return getattr(np, aggregation)(data)

    def _save_stats(self, epoch_data: EpochData) -> None:
        for stream in epoch_data:
            for name, aggregations in self._variable_aggregations.items():
                values = self._accumulator[stream][name]
                epoch_data[stream][name] = OrderedDict(
                    (one, self._compute_aggregation(one, values)) for one in aggregations
                )

    def after_epoch(self, epoch_data: EpochData, **kwargs: Any) -> None:  # noqa: ANN401 - open
        self._save_stats(epoch_data)
        super().after_epoch(epoch_data=epoch_data, **kwargs)
