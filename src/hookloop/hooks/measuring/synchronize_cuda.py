"""`SynchronizeCuda`: make the host wait for the GPU after each module."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from hookloop.engine.hook import Hook

if TYPE_CHECKING:
    from torch.utils.hooks import RemovableHandle

    from hookloop.engine.run import Run


class SynchronizeCuda(Hook):
    """Synchronize after the forward pass of every module, so that an error shows where it arose.

    It is for debugging and for correct times per module; training is much slower with it. On
    devices other than CUDA it does nothing.

    Example:
        >>> SynchronizeCuda().name
        'synchronize_cuda'
    """

    draws_random_numbers = False

    def __init__(self) -> None:
        self._handles: list[RemovableHandle] = []

    def before_run(self, run: Run) -> None:  # Not before_train: evaluations are covered too.
        if run.device.type == "cuda":
            self._handles = [
                module.register_forward_hook(_synchronize) for module in run.model.modules()
            ]

    def after_run(self, run: Run) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []


# CUDA runs kernels asynchronously: without this, a failing kernel is reported by whatever call
# happens to wait for it next.
def _synchronize(module: torch.nn.Module, args: object, output: object) -> None:
    torch.cuda.synchronize()
