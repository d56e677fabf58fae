"""`SaveMasks`: write predicted masks as pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hookloop.dialects import write_bytes
from hookloop.errors import HookError
from hookloop.writers import encode_png, to_pixels
from hookloop_dialects.emloop.hooks.abstract_hook import AbstractHook
from hookloop_dialects.emloop.hooks.accumulate_variables import variable
from hookloop_dialects.emloop.types import Batch


class SaveMasks(AbstractHook):
    """Write the mask of each example as a PNG picture, without OpenCV.

    Args:
        mask_variable: The variable with the masks.
        path_variable: The variable with the path of each mask, without the suffix.
        factor: The masks are multiplied by it.
        output_root: Directory that the paths are relative to.
        suffix: End of the file names.
        kwargs: See `AbstractHook`.
    """

    def __init__(
        self,
        mask_variable: str,
        path_variable: str,
        factor: float = 255.0,
        output_root: str = "",
        suffix: str = "_mask.png",
        **kwargs: object,
    ) -> None:
        super().__init__(**kwargs)
        if not suffix.endswith(".png"):
            raise HookError(f"SaveMasks writes PNG: suffix='{suffix}' must end in .png.")
        self._mask_variable = mask_variable
        self._path_variable = path_variable
        self._factor = factor
        self._output_root = Path(output_root)
        self._suffix = suffix

    def after_batch(self, stream_name: str, batch_data: Batch) -> None:
        masks = variable(batch_data, self._mask_variable, stream_name)
        paths = variable(batch_data, self._path_variable, stream_name)
        for mask, path in zip(masks, paths, strict=True):
            self.save_mask(np.asarray(mask), str(self._output_root / str(path)))

    def save_mask(self, mask: NDArray[Any], path: str) -> None:
        """Write a mask; the path gets the suffix."""
        file = Path(f"{path}{self._suffix}")
        file.parent.mkdir(parents=True, exist_ok=True)
        scaled = np.clip(np.rint(mask * self._factor), 0, 255).astype(np.uint8)
        # Not flushed to the disk: there is one file per example, and none is needed to resume.
        write_bytes(file, encode_png(to_pixels(scaled)), durable=False)
