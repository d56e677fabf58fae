"""Output and loss of the microbatch at hand, in every phase."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from torch import Tensor

from hookloop.core.plan import fire
from hookloop.core.run import Run
from hookloop.core.turn import Turn

Compute = Callable[[Turn], Tensor | None]


def make_compute(run: Run, autocast: AbstractContextManager[None] | None) -> Compute:
    """Return what computes a turn's output and loss; hooks may replace either."""

    def compute(turn: Turn) -> Tensor | None:
        run.output = turn.forward(run)
        fire(run.plan.after_forward, run)
        run.loss = turn.loss_of(run)
        fire(run.plan.after_loss, run)
        return run.loss

    if autocast is None:  # Full precision is spared the context, which costs a third of a us.
        return compute

    def compute_in_lower_precision(turn: Turn) -> Tensor | None:
        with autocast:
            return compute(turn)

    return compute_in_lower_precision
