"""`WriteTensorBoard`: write the epoch's data for TensorBoard.

In emloop this hook is in a separate package, ``emloop_tensorflow``.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hookloop.dialects import require
from hookloop.errors import HookError
from hookloop.writers import TensorBoard
from hookloop_dialects.emloop.hooks.abstract_hook import AbstractHook
from hookloop_dialects.emloop.types import EpochData

_log = logging.getLogger()  # emloop logs with the root logger.


class WriteTensorBoard(AbstractHook):
    """Write ``<stream>/<variable>`` with the epoch as the step.

    Args:
        model: Not used.
        output_dir: Directory of the event file.
        image_variables: Variables that are pictures, height x width x 3.
        flush_secs: Not used, because each epoch is written at once.
        visualize_graph: Not offered; the native `WriteTensorBoard` has ``graph=``.
        on_unknown_type: What to do with a value that is not a number: ``error``, ``warn``,
            ``ignore``.
        on_missing_variable: What to do with a missing picture.
        kwargs: See `AbstractHook`.
    """

    UNKNOWN_TYPE_ACTIONS = ("error", "warn", "ignore")
    MISSING_VARIABLE_ACTIONS = ("error", "warn", "ignore")

    def __init__(
        self,
        output_dir: str,
        model: object = None,
        image_variables: Sequence[str] | None = None,
        flush_secs: int = 10,
        visualize_graph: bool = False,
        on_unknown_type: str = "warn",
        on_missing_variable: str = "error",
        **kwargs: object,
    ) -> None:
        require("tensorboard", extra="tensorboard", who="WriteTensorBoard")
        super().__init__(**kwargs)
        assert on_unknown_type in self.UNKNOWN_TYPE_ACTIONS, on_unknown_type
        assert on_missing_variable in self.MISSING_VARIABLE_ACTIONS, on_missing_variable
        if visualize_graph:
            raise HookError(
                "WriteTensorBoard: visualize_graph draws a TensorFlow graph. For a torch model "
                "use hookloop.hooks.WriteTensorBoard(graph=True)."
            )
        self._output_dir = output_dir
        self._image_variables = list(image_variables or ())
        self._on_unknown_type = on_unknown_type
        self._on_missing_variable = on_missing_variable
        self._writer: TensorBoard | None = None
        self.reads_epoch_data = tuple(self._image_variables)

    def after_epoch(self, epoch_id: int, epoch_data: EpochData) -> None:
        # Not in the constructor: a config that is only checked must not leave an event file.
        self._writer = self._writer or TensorBoard(Path(self._output_dir))
        for stream, data in epoch_data.items():
            for name, value in data.items():
                self._write(self._writer, f"{stream}/{name}", name, value, epoch_id)
            for name in [name for name in self._image_variables if name not in data]:
                self._report(self._on_missing_variable, KeyError(f"there is no '{name}'."))
        self._writer.flush()

    def after_training(self, success: bool) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None  # A later training of the same hook opens a new file.

    def _write(
        self, writer: TensorBoard, tag: str, name: str, value: object, epoch_id: int
    ) -> None:
        value = _number(value)
        if name in self._image_variables:
            writer.write_image(tag, np.asarray(value), epoch_id)
        elif isinstance(value, int | float | np.number):
            writer.write_scalar(tag, float(value), epoch_id)
        else:
            self._report(self._on_unknown_type, TypeError(f"'{name}' is not a number."))

    def _report(self, action: str, error: Exception) -> None:
        if action == "error":
            raise error
        if action == "warn":
            _log.warning("WriteTensorBoard: %s", error)


def _number(value: object) -> object:
    return value.get("mean", value.get("nanmean")) if isinstance(value, dict) else value
