# ruff: noqa: ANN401 - what SummaryWriter takes
"""``TensorboardVisBackend.experiment``: the methods of torch's SummaryWriter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from torch import Tensor

from hookloop.writers import Histogram, Image, Record, Scalars, Text


class Experiment:
    """What hooks draw on directly: each call becomes a record.

    Args:
        write: Takes a record.
    """

    def __init__(self, write: Callable[[Record], None]) -> None:
        self._write = write

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: int | None = None,
        *args: object,
        **kwargs: object,
    ) -> None:
        """Add a number."""
        self._write(Scalars({tag: float(scalar_value)}, int(global_step or 0)))

    def add_scalars(
        self, main_tag: str, tag_scalar_dict: Mapping[str, Any], global_step: int | None = None,
        *args: object, **kwargs: object,
    ) -> None:  # fmt: skip
        """Add several numbers."""
        values = {f"{main_tag}/{name}": float(one) for name, one in tag_scalar_dict.items()}
        self._write(Scalars(values, int(global_step or 0)))

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """Add a picture."""
        pixels = img_tensor.detach().cpu().numpy() if isinstance(img_tensor, Tensor) else img_tensor
        pixels = np.asarray(pixels)
        if dataformats.upper() == "CHW":
            pixels = np.moveaxis(pixels, 0, -1)
        self._write(Image(tag, pixels, global_step))

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        *args: object,
        **kwargs: object,
    ) -> None:
        """Add several pictures, one after the other."""
        for number, one in enumerate(img_tensor):
            self.add_image(f"{tag}/{number}", one, global_step)

    def add_figure(
        self,
        tag: str,
        figure: Any,
        global_step: int | None = None,
        *args: object,
        **kwargs: object,
    ) -> None:
        """Add a figure of matplotlib."""
        self._write(Image(tag, figure, global_step))

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: int | None = None,
        *args: object,
        **kwargs: object,
    ) -> None:
        """Add numbers whose distribution is shown."""
        self._write(Histogram(tag, values, global_step))

    def add_text(
        self,
        tag: str,
        text_string: str,
        global_step: int | None = None,
        *args: object,
        **kwargs: object,
    ) -> None:
        """Add a text."""
        self._write(Text(tag, str(text_string), global_step))

    def flush(self) -> None:
        """Do nothing: what writes the records flushes itself."""

    close = flush
