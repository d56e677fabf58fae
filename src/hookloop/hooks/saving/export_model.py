"""`ExportModel`: write the trained model for other programs."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from hookloop.checkpoint.export.export import (
    SUFFIXES,
    Example,
    Format,
    at_least_two,
    format_named,
    write_model,
)
from hookloop.data.batch import size_of, to_device
from hookloop.data.model_inputs import inputs_for
from hookloop.engine.hook import Hook, Priority
from hookloop.errors import HookError, HookloopError, ModelError
from hookloop.runs.files import make_folder
from hookloop.runs.policy import hash_of
from hookloop.version import VERSION

if TYPE_CHECKING:
    from hookloop.engine.run import Run


class ExportModel(Hook):
    """Write the trained model, in evaluation mode and on the CPU, when the training is over.

    ``safetensors`` holds the weights alone, ``torchscript`` a traced program, ``torch.export`` an
    exported program for torch, and ``onnx`` one for other runtimes; all but the first are traced
    with the inputs of the last batch, and take any number of samples if the model does. Version,
    iteration, metrics and the hash of the config are in the file, as JSON under ``hookloop``.

    Args:
        format: ``"safetensors"``, ``"torchscript"``, ``"torch.export"`` (or ``"export"``), or
            ``"onnx"``.
        file: Name of the file in the run directory; by default ``model`` with the format's ending.
        inputs: ``inputs(run)`` returns the example to trace with, instead of the last batch.

    Example:
        >>> ExportModel("export").file
        'model.pt2'
    """

    ranks = "first"
    priority = Priority.VERY_LOW

    def __init__(
        self,
        format: Format = "safetensors",
        file: str | None = None,
        inputs: Callable[[Run], object] | None = None,
    ) -> None:
        try:
            self.format = format_named(format)
        except HookloopError as error:
            raise HookError(f"ExportModel: {error}") from error
        self.file = file or f"model{SUFFIXES[self.format]}"
        self.inputs = inputs or _inputs_of

    def after_train(self, run: Run) -> None:
        try:
            self._write(run)
        except OSError as error:
            # The training is done, and a full disk must not make it a failed run. Any other error,
            # such as a model that cannot be traced, is the user's to fix and is raised.
            run._plan.disable(self, "after_train", error)

    def _write(self, run: Run) -> None:
        path = run.dir / self.file
        make_folder(path.parent, run.dir)
        # A copy, because the model of the run stays on its device and in its mode.
        model = copy.deepcopy(run.model).cpu().eval()
        example = None
        if self.format != "safetensors":
            example = Example.of(to_device(self.inputs(run), torch.device("cpu")))
        try:
            write_model(model, path, self.format, example, _metadata(run))
        except ModelError as error:
            raise ModelError(
                f"ExportModel: give inputs=, or format='safetensors': {error}"
            ) from error


def _inputs_of(run: Run) -> object:
    args, named = inputs_for(
        run.model, run.batch, has_loss=run._internals.loss_function is not None
    )
    return at_least_two(named or args, size_of(run.batch))


def _metadata(run: Run) -> dict[str, object]:
    """Return what the file says about itself."""
    about: dict[str, object] = {
        "hookloop": VERSION,
        "iter": run.progress.iter,
        "epoch": run.progress.epoch,
        "metrics": run.metrics.all_latest(),
    }
    if run.config:
        about["config_sha256"] = hash_of(run.config)
    return about
