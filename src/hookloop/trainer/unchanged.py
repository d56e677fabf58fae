"""A loop of the user's own that has changed nothing: the call that steps the optimizer is missing.

The update is the user's, and so is how it changes the model; only at the end is it sure that
nothing did.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.parameter import is_lazy

from hookloop.errors import ModelError
from hookloop.every import count_of

if TYPE_CHECKING:
    from hookloop.engine.run import Run

FEW = 10
"""So many iterations may do without an update: somebody looks at the batches."""


class Unchanged:
    """Notices that a loop has changed neither the model nor what the optimizers step.

    Args:
        run: The run, before the loop.
    """

    def __init__(self, run: Run) -> None:
        self._begin = run.progress.iter
        self._versions = [one._version for one in _tensors(run)]
        self._sums = [_sum_of(one) for one in _tensors(run)]

    def check_end(self, run: Run) -> None:
        """Reject a loop that made iterations and no update."""
        made = run.progress.iter - self._begin
        # A version says nothing of what is written past it, by a fused optimizer or through .data.
        if (
            made < FEW
            or run.is_interrupted
            or self._versions != [one._version for one in _tensors(run)]
            or any(optimizer.state for optimizer in run.optimizers.values())
            or self._sums != [_sum_of(one) for one in _tensors(run)]
        ):
            return
        raise ModelError(
            f"The loop made {count_of(made, 'iteration')} and changed nothing of the model: call "
            "loss.backward() and the optimizer's step() in it, or give step= and call train()."
        )


def _tensors(run: Run) -> Iterator[Tensor]:
    stepped = [
        one
        for optimizer in run.optimizers.values()
        for group in optimizer.param_groups
        for one in group["params"]
    ]
    yield from (
        one for one in (*run.model.parameters(), *run.model.buffers(), *stepped) if not is_lazy(one)
    )


def _sum_of(tensor: Tensor) -> tuple[Tensor | float, ...]:
    numbers = tensor.detach()
    if numbers.is_floating_point():
        return float(numbers.sum(dtype=torch.float64)), float(numbers.norm(dtype=torch.float64))
    return ()
