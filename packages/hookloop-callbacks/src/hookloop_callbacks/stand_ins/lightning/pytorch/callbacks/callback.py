# ruff: noqa: ANN401 - whatever a loop passes; the names say when each is called
"""`Callback`: the base class, with Lightning's methods, which do nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Callback:
    """Derive from it, and override what you need."""

    @property
    def state_key(self) -> str:
        """The name under which Lightning keeps the state."""
        return type(self).__qualname__

    def _generate_state_key(self, **kwargs: Any) -> str:
        return f"{type(self).__qualname__}{kwargs!r}"

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None: ...


def _nothing(self: Callback, trainer: Any, pl_module: Any, *args: Any, **kwargs: Any) -> None:
    """Do nothing."""


METHODS = (
    "setup", "teardown", "on_fit_start", "on_fit_end", "on_sanity_check_start",
    "on_sanity_check_end", "on_train_start", "on_train_end", "on_train_epoch_start",
    "on_train_epoch_end", "on_train_batch_start", "on_train_batch_end",
    *(f"on_{phase}_{event}" for phase in ("validation", "test", "predict")
      for event in ("start", "end", "epoch_start", "epoch_end", "batch_start", "batch_end")),
    "on_exception", "on_save_checkpoint", "on_load_checkpoint", "on_before_backward",
    "on_after_backward", "on_before_optimizer_step", "on_before_zero_grad",
)  # fmt: skip

# One function for all, so that a callback which overrides none of them is called nowhere.
for _name in METHODS:
    setattr(Callback, _name, _nothing)
