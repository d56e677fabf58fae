"""`SaveEvery`, `SaveBest` and `SaveLatest`: save the model."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import Protocol, cast

import numpy as np

from hookloop_dialects.emloop.epoch_data import EpochData as OfRun
from hookloop_dialects.emloop.hooks.abstract_hook import AbstractHook
from hookloop_dialects.emloop.hooks.every_n_epoch import EveryNEpoch
from hookloop_dialects.emloop.types import EpochData

_log = logging.getLogger()  # emloop logs with the root logger.


class Savable(Protocol):
    """A model that can save itself."""

    def save(self, name_suffix: str) -> str:
        """Save under a name that ends in the suffix; return the path."""


class SaveEvery(EveryNEpoch):
    """Save the model every n-th epoch, and after the zeroth.

    Args:
        model: The model.
        on_failure: What to do if saving fails: ``error``, ``warn``, ``ignore``.
        n_epochs: The n.
        kwargs: See `AbstractHook`.
    """

    SAVE_FAILURE_ACTIONS = ("error", "warn", "ignore")

    def __init__(
        self, model: Savable, on_failure: str = "error", n_epochs: int = 1, **kwargs: object
    ) -> None:
        super().__init__(n_epochs=n_epochs, **kwargs)
        assert on_failure in self.SAVE_FAILURE_ACTIONS, on_failure
        self._model = model
        self._on_save_failure = on_failure

    def _after_n_epoch(self, epoch_id: int, **_: object) -> None:
        self.save_model(self._model, str(epoch_id), self._on_save_failure)

    @staticmethod
    def save_model(model: Savable, name_suffix: str, on_failure: str) -> None:
        """Save a model, and handle a failure as requested."""
        try:
            _log.info("Model saved to: %s", model.save(name_suffix))
        except Exception as error:
            # emloop raises an IOError, whatever the model's own error was.
            if on_failure == "error":
                raise OSError("The model could not be saved.") from error
            if on_failure == "warn":
                _log.warning("The model could not be saved: %s", error)


class SaveLatest(AbstractHook):
    """Save the model after each epoch under the same name.

    Args:
        model: The model.
        on_save_failure: What to do if saving fails: ``error``, ``warn``, ``ignore``.
        kwargs: See `AbstractHook`.
    """

    _OUTPUT_NAME = "latest"

    def __init__(self, model: Savable, on_save_failure: str = "error", **kwargs: object) -> None:
        super().__init__(**kwargs)
        assert on_save_failure in SaveEvery.SAVE_FAILURE_ACTIONS, on_save_failure
        self._model = model
        self._on_save_failure = on_save_failure

    def after_epoch(self, **_: object) -> None:
        SaveEvery.save_model(self._model, self._OUTPUT_NAME, self._on_save_failure)


class SaveBest(AbstractHook):
    """Save the model whenever a variable is better than ever before; NaN is never better.

    Args:
        model: The model.
        model_name: Suffix of the file's name.
        variable: The variable in the epoch's data.
        condition: Whether ``min`` or ``max`` is better.
        stream: The stream of the variable.
        aggregation: The statistic of it; empty if the variable is a number itself.
        on_save_failure: What to do if saving fails: ``error``, ``warn``, ``ignore``.
        kwargs: See `AbstractHook`.
    """

    OBJECTIVES = frozenset({"min", "max"})

    def __init__(
        self,
        model: Savable,
        model_name: str = "best",
        variable: str = "loss",
        condition: str = "min",
        stream: str = "valid",
        aggregation: str = "mean",
        on_save_failure: str = "error",
        **kwargs: object,
    ) -> None:
        super().__init__(**kwargs)
        assert on_save_failure in SaveEvery.SAVE_FAILURE_ACTIONS, on_save_failure
        assert condition in self.OBJECTIVES, condition
        self._model = model
        self._model_name = model_name
        self._variable = variable
        self._condition = condition
        self._stream_name = stream
        self._aggregation = aggregation
        self._on_save_failure = on_save_failure
        self._best_value: float | None = None
        self.reads_epoch_data = (variable,)  # Lets the dialect check the order of hooks.

    def state_dict(self) -> dict[str, object]:
        return {"best": self._best_value}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        self._best_value = cast("float | None", state["best"])

    def after_epoch(self, epoch_data: EpochData, **_: object) -> None:
        value = self._get_value(epoch_data)
        if self._is_value_better(value):
            self._best_value = value
            SaveEvery.save_model(self._model, self._model_name, self._on_save_failure)

    def _get_value(self, epoch_data: EpochData) -> float:
        value = entry(epoch_data, self._stream_name, self._variable)
        if self._aggregation:
            if not isinstance(value, dict):
                raise TypeError(f"'{self._variable}' has no statistics: set aggregation to ''.")
            if self._aggregation not in value:
                raise KeyError(f"'{self._variable}' has no '{self._aggregation}'.")
            value = value[self._aggregation]
        if not np.isscalar(value):
            raise ValueError(f"'{self._variable}' is not a single number.")
        return float(cast("float", value))

    def _is_value_better(self, value: float) -> bool:
        # In emloop a NaN in the first epoch becomes the best value. Every comparison with it is
        # false, so no model is ever saved.
        if math.isnan(value):
            return False
        if self._best_value is None:
            return True
        return value < self._best_value if self._condition == "min" else value > self._best_value


def entry(epoch_data: EpochData, stream: str, variable: str) -> object:
    """Return a variable of the epoch's data; the `KeyError` for a missing one lists all."""
    # A plain dict has no message of its own; that of a run says which streams there are, and when.
    if stream not in epoch_data and not isinstance(epoch_data, OfRun):
        raise KeyError(f"no stream '{stream}' in this epoch. Available: {', '.join(epoch_data)}.")
    variables = epoch_data[stream]
    if variable not in variables:
        names = ", ".join(variables) or (
            f"none. A hook that computes it comes first: ComputeStats: {{variables: [{variable}]}}"
        )
        raise KeyError(f"the stream '{stream}' has no variable '{variable}'. Available: {names}.")
    return variables[variable]
