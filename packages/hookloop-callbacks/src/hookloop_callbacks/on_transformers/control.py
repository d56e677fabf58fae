"""`Control`: the switches that callbacks set to steer the training."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass
class TrainerControl:
    """The argument ``control``.

    Attributes:
        should_training_stop: Ends the training; it stays set.
        should_epoch_stop: Would end the epoch alone, which is rejected.
        should_save: Requests a checkpoint; reset at each step.
        should_evaluate: Requests a validation; reset at each step.
        should_log: Calls ``on_log`` of all callbacks; reset at each step.
    """

    should_training_stop: bool = False
    should_epoch_stop: bool = False
    should_save: bool = False
    should_evaluate: bool = False
    should_log: bool = False

    def state(self) -> dict[str, Any]:
        """Return the switches, as Transformers keeps them."""
        return {"args": asdict(self), "attributes": {}}
