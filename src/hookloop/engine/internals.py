"""What the engine keeps of a run, and hooks do not see.

A `Run` is what hooks read and ask; everything else that belongs to it is here, in one object.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hookloop.checkpoint.state.undeclared import Undeclared
from hookloop.data.random.observers import ObserverRandomness
from hookloop.parallel.ranks import Ranks
from hookloop.parallel.world import World
from hookloop.requests import Requests
from hookloop.runs.interventions import Interventions
from hookloop.writers.background import Outbox

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from hookloop.data.stream import Stream
    from hookloop.engine.plan import Plan
    from hookloop.engine.run import Phase, Run
    from hookloop.every import Every
    from hookloop.metrics.meters import Metric
    from hookloop.parallel.sharded import Shards
    from hookloop.runs.identity import Parent


@dataclass(slots=True, kw_only=True)
class Internals:
    """What the engine keeps of a run.

    Attributes:
        test_data: The test streams.
        predict_data: The streams to predict.
        seed: The seed of the random numbers, if one was given.
        val_every: Interval between validations, of the first stream if each has its own; None if
            there is nothing to validate on.
        purpose: The phase that was called for; unlike ``run.phase`` it does not change.
        ranks: The connection to the other ranks; hooks use `Run.gather` and `Run.reduce`.
        requests: What was requested.
        wishes: What was requested on this rank and waits for the next sync point of the ranks.
        asked: Calls that a thread asks the loop to make, on all ranks, so they must be picklable.
        outbox: Where records wait for the writers; hooks use `Run.emit`.
        shared: What hooks keep for each other in this run, by a name of theirs. It is not state:
            what has to survive a resume goes through a hook.
        observer_randomness: Where hooks that only observe get their random numbers.
        precision: That of forward and loss: ``fp32``, ``bf16`` or ``fp16``.
        scaler: The loss scaler of half precision, if there is one.
        meters: The metrics that evaluations compute, by name.
        shards: The parts of a model that is spread over the ranks; see `Run.with_model`.
        loss_function: The ``loss=`` of the Trainer; None if a step or the model computes the loss.
        step_function: The ``step=`` of the Trainer, if one was given.
        arguments: The Trainer's plain arguments that a resume compares, by name.
        changes: What was changed on purpose at a resume, each with its iteration.
        id: Which run this is, in all processes that train it; None before it is trained.
        parent: The checkpoint of another run that it began with.
        is_from_other: Whether what was loaded now is the checkpoint of another run.
        root: The last link of the chain of fingerprints, if they are recorded.
        interventions: The record of what happens to the run from outside.
        undeclared: What else a training changes, such as variables of a step, and parameters of a
            loss.
    """

    test_data: dict[str, Stream] = field(default_factory=dict)
    predict_data: dict[str, Stream] = field(default_factory=dict)
    seed: int | None = None
    val_every: Every | None = None
    purpose: Phase = "train"
    ranks: Ranks = field(default_factory=lambda: Ranks(World()))
    requests: Requests = field(default_factory=Requests)
    wishes: Requests = field(default_factory=Requests)
    asked: deque[Callable[[Run], object]] = field(default_factory=deque)
    outbox: Outbox = field(default_factory=Outbox)
    shared: dict[str, object] = field(default_factory=dict)
    observer_randomness: ObserverRandomness = field(default_factory=ObserverRandomness)
    precision: str = "fp32"
    scaler: torch.amp.GradScaler | None = None
    meters: Mapping[str, Metric] = field(default_factory=dict)
    shards: Shards | None = None
    loss_function: Callable[..., Tensor | None] | None = None
    step_function: object = None
    arguments: dict[str, object] = field(default_factory=dict)
    changes: list[dict[str, object]] = field(default_factory=list)
    id: str | None = None
    parent: Parent | None = None
    is_from_other: bool = False
    root: str | None = None
    interventions: Interventions = field(default_factory=Interventions)
    undeclared: Undeclared = field(default_factory=Undeclared)


def internals_of(run: Run) -> Internals:
    """Return what the engine keeps of a run, for code that stands for a part of the engine."""
    return run._internals


def plan_of(run: Run) -> Plan:
    """Return the compiled calls of a run."""
    return run._plan
