"""``mmengine.model.BaseDataPreprocessor``: prepare a batch of a loader for a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import torch
from torch import Tensor, nn


class BaseDataPreprocessor(nn.Module):
    """Move data to the device of the model.

    Args:
        non_blocking: Whether the copy may overlap with other work.
    """

    def __init__(self, non_blocking: bool = False) -> None:
        super().__init__()
        self._non_blocking = non_blocking
        self._device = torch.device("cpu")

    def cast_data(self, data: object) -> object:
        """Return nested data with all tensors on the device."""
        if isinstance(data, Mapping):
            return {key: self.cast_data(value) for key, value in data.items()}
        # Text is a sequence, too, but has nothing to move.
        if isinstance(data, str | bytes) or data is None:
            return data
        if isinstance(data, tuple) and hasattr(data, "_fields"):
            return type(data)(*(self.cast_data(entry) for entry in data))  # type: ignore[arg-type]
        if isinstance(data, Sequence):
            return type(data)(self.cast_data(entry) for entry in data)  # type: ignore[call-arg]
        if isinstance(data, Tensor) or callable(getattr(data, "to", None)):
            return data.to(self.device, non_blocking=self._non_blocking)  # type: ignore[attr-defined]
        return data

    def forward(self, data: object, training: bool = False) -> object:
        """Prepare one batch."""
        return self.cast_data(data)

    @property
    def device(self) -> torch.device:
        """The device that data is moved to."""
        return self._device

    def _apply(self, fn: object, recurse: bool = True) -> BaseDataPreprocessor:
        """Note the device to which the model is moved; ``to``, ``cuda`` and ``cpu`` call this."""
        # There is no parameter here to ask for its device, so an empty tensor shows it.
        self._device = cast("Tensor", fn(torch.zeros(0))).device  # type: ignore[operator]
        return cast("BaseDataPreprocessor", super()._apply(fn, recurse))  # type: ignore[no-untyped-call]
