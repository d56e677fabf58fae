"""`OnPlateau`: the base of hooks that act when a variable stops improving."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import cast

import numpy as np

from hookloop_dialects.emloop.hooks.compute_stats import ComputeStats
from hookloop_dialects.emloop.types import EpochData


class OnPlateau(ComputeStats, ABC):
    """Call ``_on_plateau_action`` when the last epochs are worse than those before.

    Args:
        long_term: Length of the long window, in epochs.
        short_term: Length of the short window.
        stream: The stream to watch.
        variable: The variable to watch; its mean is added to the epoch's data.
        objective: Whether ``min`` or ``max`` is better.
        kwargs: See `AbstractHook`.
    """

    OBJECTIVES = frozenset({"min", "max"})
    _AGGREGATION = "mean"

    def __init__(
        self,
        long_term: int = 50,
        short_term: int = 10,
        stream: str = "valid",
        variable: str = "loss",
        objective: str = "min",
        **kwargs: object,
    ) -> None:
        # Computes its own mean, so that it works without a ComputeStats before it.
        super().__init__(variables={variable: [self._AGGREGATION]}, **kwargs)
        assert long_term >= short_term, "long_term must not be less than short_term"
        # emloop does not check it, and anything but 'min' means 'max' there.
        if objective not in self.OBJECTIVES:
            raise ValueError(f"objective='{objective}': write min or max.")
        self._long_term = long_term
        self._short_term = short_term
        self._stream = stream
        self._variable = variable
        self._objective = objective
        self._saved_loss: list[float] = []

    def state_dict(self) -> dict[str, object]:
        return {"accumulated": super().state_dict(), "values": list(self._saved_loss)}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        super().load_state_dict(cast("Mapping[str, object]", state["accumulated"]))
        self._saved_loss = list(cast("list[float]", state["values"]))

    @abstractmethod
    def _on_plateau_action(self, **kwargs: object) -> None:
        """Act."""

    # By position as well, as in emloop; its other hooks have no number of the epoch here.
    def after_epoch(self, epoch_id: int, epoch_data: EpochData) -> None:  # type: ignore[override]
        super().after_epoch(epoch_data=epoch_data, epoch_id=epoch_id)
        self._saved_loss.append(float(epoch_data[self._stream][self._variable][self._AGGREGATION]))
        # In the first epochs both windows hold the same values, so nothing happens.
        long, short = (
            float(np.mean(self._saved_loss[-count:]))
            for count in (self._long_term, self._short_term)
        )
        if long < short if self._objective == "min" else long > short:
            self._on_plateau_action(epoch_id=epoch_id, epoch_data=epoch_data)
