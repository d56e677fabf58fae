"""Iterations beside a training, with the objects of its Trainer: nothing is left of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

from hookloop.data.reading.current import nothing_read
from hookloop.data.transfer import make_transfer
from hookloop.engine.plan import Plan
from hookloop.metrics.store import MetricStore
from hookloop.parallel.launched import report_iteration
from hookloop.requests import Requests
from hookloop.trainer.ending import breaking_off
from hookloop.trainer.several_ranks import align_ranks
from hookloop.trainer.state.parts import Where
from hookloop.trainer.state.run_state import RunState
from hookloop.update.assemble import make_of
from hookloop.update.update import Make
from hookloop.writers.background import Outbox

if TYPE_CHECKING:
    from hookloop.engine.run import Run
    from hookloop.trainer.trainer import Trainer

# What an update, or a step of the user's, may set on a run.
_ATTRIBUTES = (
    "_plan", "metrics", "batch", "output", "loss", "place", "phase", "stream",
)  # fmt: skip
_OF_ENGINE = ("outbox", "requests", "wishes")

UPDATES = (
    "model", "optimizers", "scaler", "progress", "undeclared", "gradients", "generators",
)  # fmt: skip
"""The parts of a run that an update changes, or the reading of a sample."""

ALL = (*UPDATES, "data")
"""The same with the position in the data, which changes where batches are read."""


@contextmanager
def borrowed(
    trainer: Trainer, *, keep: Collection[str] = ALL, where: Where = "device"
) -> Iterator[Iterations]:
    """Use the objects of a Trainer for a while; at the end they are as before, to the last bit.

    Weights, buffers, gradients, optimizers, the loss scaler, counters, metrics, random numbers,
    those of data sets too, and what nobody declared are set back, in place; schedules must not
    step. No hook acts. On many ranks, all of them do this together, and fail together.

    Args:
        trainer: The Trainer; its hooks are checked already.
        keep: The parts that are set back; by default all that iterations change.
        where: Where the copies are kept.
    """
    run = trainer.run
    with _failing_together(run):
        run._internals.ranks.open(run.device)
        # A sharded model stays spread over the ranks, as a training leaves it.
        align_ranks(run, trainer._session.parallel)
    own = run._internals
    before: list[tuple[object, str, object]] = [
        (run, name, getattr(run, name)) for name in _ATTRIBUTES
    ]
    before += [(own, name, getattr(own, name)) for name in _OF_ENGINE]
    with RunState(run).kept(*keep, where=where), _failing_together(run):
        run._plan = Plan([], run._plan.points)
        run.metrics, own.outbox = MetricStore(), Outbox()
        own.requests, own.wishes = Requests(), Requests()
        run.phase = run.stream = "train"
        try:
            run.model.train()
            yield Iterations(trainer)
        finally:
            for owner, name, value in before:
                setattr(owner, name, value)


@contextmanager
def _failing_together(run: Run) -> Iterator[None]:
    """Let the other ranks know of a failure, and the launcher how far the run got."""
    if run.world.is_alone:
        yield
        return
    try:
        with breaking_off(run):
            yield
    except BaseException:
        report_iteration(run.progress.iter)
        raise


class Iterations:
    """Makes the iterations of a borrowed Trainer.

    Args:
        trainer: The Trainer.
    """

    def __init__(self, trainer: Trainer) -> None:
        self._run = trainer.run
        self._updates = trainer._updates
        self._parallel = trainer._session.parallel
        self._makes: list[Make] = []

    def groups(self) -> Iterator[list[object]]:
        """Read groups of microbatches, pass after pass, on the device."""
        move, source = make_transfer(self._run.device), self._run.train_data
        empty = 0
        while source is not None:
            empty += 1  # One is possible: the training may have paused at the end of a pass.
            for group in source.groups(self._run.accumulate):
                empty = 0
                yield group if move is None else [move(batch) for batch in group]
            if empty > 1:
                raise nothing_read(source.data, source.name, source.passes)

    def make(self, batches: Sequence[object]) -> float | None:
        """Make the updates of an iteration; return the sum of their losses, None if all skip."""
        run, losses = self._run, []
        if not self._makes:
            self.renew()
        for make in self._makes:
            run.loss = None
            run.batch = batches[0]
            make(run, list(batches))
            losses += _loss_of(run)
        run.progress.iter += 1
        # An update of the user's own has the loss of a rank's part, and all have to end together.
        of_ranks = [
            loss for loss in run.gather(sum(losses) if losses else None) if loss is not None
        ]
        return sum(of_ranks) / len(of_ranks) if of_ranks else None

    def renew(self) -> None:
        """Begin with new updates and scalers: a scaler that failed halfway cannot be used again."""
        kind, several = self._run.device.type, len(self._updates) > 1
        scalers = [one.scaler and torch.amp.GradScaler(kind) for one in self._updates]
        self._makes = [
            make_of(self._run, one.apart(scaler), self._parallel, finds_unused=several)
            for one, scaler in zip(self._updates, scalers, strict=True)
        ]


def _loss_of(run: Run) -> list[float]:
    return [] if run.loss is None else [float(run.loss.detach())]
