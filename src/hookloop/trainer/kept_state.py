"""A training beside the training: updates that leave the run as it was, to the last bit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hookloop.engine.plan import Plan
from hookloop.metrics.store import MetricStore
from hookloop.requests import Requests
from hookloop.trainer.state.parts import Where
from hookloop.trainer.state.run_state import RunState
from hookloop.writers.outbox import Outbox

if TYPE_CHECKING:
    from hookloop.engine.run import Run

# What an update, or a step of the user's, may set on a run.
_ATTRIBUTES = (
    "plan", "metrics", "outbox", "requests", "wishes", "batch", "output", "loss", "place", "phase",
    "stream",
)  # fmt: skip

CHANGED = ("model", "optimizers", "scaler", "progress", "undeclared", "generators")
"""The parts that an update changes."""


@contextmanager
def without_trace(run: Run, *, reads: bool = True, where: Where = "device") -> Iterator[None]:
    """Let updates be made that leave the run as it was; no hook acts meanwhile.

    Weights, buffers, gradients, optimizers, the loss scaler, counters, metrics, random numbers and
    what nobody declared are set back, in place; schedules must not step. On many ranks, all of them
    do this together.

    Args:
        run: The run.
        reads: Whether batches are read, so that the position in the data is set back, too.
        where: Where the copies are kept.
    """
    kept = {name: getattr(run, name) for name in _ATTRIBUTES}
    with RunState(run).kept(*CHANGED, *(["data"] if reads else []), where=where):
        run.plan = Plan([], run.plan.points)
        run.metrics, run.outbox = MetricStore(), Outbox()
        run.requests, run.wishes = Requests(), Requests()
        run.phase = run.stream = "train"
        try:
            yield
        finally:
            for name, value in kept.items():
                setattr(run, name, value)
