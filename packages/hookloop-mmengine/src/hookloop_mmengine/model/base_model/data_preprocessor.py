"""``mmengine.model.BaseDataPreprocessor``: prepare a batch of a loader for a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import torch
from torch import Tensor, nn

from hookloop_mmengine.model.utils.batches import stack_batch


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


class ImgDataPreprocessor(BaseDataPreprocessor):
    """Normalize images, pad them to one size and stack them.

    Args:
        mean: The mean of each channel.
        std: The standard deviation of each channel.
        pad_size_divisor: Height and width are padded to a multiple of it.
        pad_value: The value of the padding.
        bgr_to_rgb: Whether to reverse the channels.
        rgb_to_bgr: The same; only one of them may be set.
        non_blocking: Whether the copy may overlap with other work.
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
        pad_size_divisor: int = 1,
        pad_value: float = 0,
        bgr_to_rgb: bool = False,
        rgb_to_bgr: bool = False,
        non_blocking: bool = False,
    ) -> None:
        super().__init__(non_blocking)
        if bgr_to_rgb and rgb_to_bgr:
            raise AssertionError("`bgr2rgb` and `rgb2bgr` cannot be set to True at the same time")
        if (mean is None) != (std is None):
            raise AssertionError("mean and std should be both None or both given")
        self._channel_conversion = bgr_to_rgb or rgb_to_bgr
        self._enable_normalize = mean is not None
        # Not in the state dict, so that checkpoints of MMEngine fit.
        self.register_buffer("mean", torch.tensor(mean or [0.0]).view(-1, 1, 1), False)
        self.register_buffer("std", torch.tensor(std or [1.0]).view(-1, 1, 1), False)
        self.pad_size_divisor = pad_size_divisor
        self.pad_value = pad_value

    def forward(self, data: object, training: bool = False) -> object:
        prepared = cast("dict[str, object]", self.cast_data(data))
        inputs = cast("Tensor | Sequence[Tensor]", prepared["inputs"])
        images = [self._normalize(image) for image in inputs]
        # Networks that halve the size several times need a multiple of a power of two.
        prepared["inputs"] = stack_batch(images, self.pad_size_divisor, self.pad_value)
        prepared.setdefault("data_samples", None)
        return prepared

    def _normalize(self, image: Tensor) -> Tensor:
        if self._channel_conversion:
            image = image[[2, 1, 0], ...]
        image = image.float()
        return (image - self.mean) / self.std if self._enable_normalize else image
