"""`ClassyMeter`: the base class of meters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self


class ClassyMeter:
    """Measures something over the batches of a phase; a subclass has the methods."""

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Make the meter from its settings."""
        return cls(**config)

    @property
    def name(self) -> str:
        """The name in logs and files."""
        raise NotImplementedError

    @property
    def value(self) -> Any:  # noqa: ANN401 - a number, or a mapping of them
        """What was measured since the last reset."""
        raise NotImplementedError

    def update(self, model_output: Any, target: Any, **kwargs: Any) -> None:  # noqa: ANN401 - any model
        """Add one batch."""
        raise NotImplementedError

    def reset(self) -> None:
        """Forget all batches."""
        raise NotImplementedError

    def sync_state(self) -> None:
        """Combine the counts of all processes."""

    def validate(self, model_output_shape: Any, target_shape: Any) -> None:  # noqa: ANN401 - shapes
        """Check the shapes that it will get."""

    def get_classy_state(self) -> dict[str, Any]:
        """Return the state that a checkpoint keeps."""
        return {}

    def set_classy_state(self, state: Mapping[str, Any]) -> None:
        """Restore the state."""

    def __repr__(self) -> str:
        value = self.value
        if not isinstance(value, Mapping):
            return super().__repr__()
        if any(isinstance(number, Mapping) for number in value.values()):
            return repr({"name": self.name, "value": value})  # VISSL's: a mapping for each output.
        shown = ",".join(f"{key}={number:.6f}" for key, number in value.items())
        return f"{self.name}_meter({shown})"
