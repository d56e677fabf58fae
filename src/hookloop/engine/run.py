"""The run in progress: what every hook receives.

Hooks read its attributes and make requests through its methods; the loop alone writes the counters
and handles the requests, between two iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar, cast

from hookloop import peers
from hookloop.arguments import missing_attribute
from hookloop.checkpoint.saving.request import Save
from hookloop.data.batch import size_of
from hookloop.data.ranks.place import Place
from hookloop.engine.internals import Internals
from hookloop.engine.plan import Plan, fire
from hookloop.engine.progress import Progress
from hookloop.errors import DataError, ModelError, SkippedUpdateError, nearest
from hookloop.outcome import Outcome
from hookloop.parallel.world import World
from hookloop.requests import Requests, Rewind, Stop, both
from hookloop.runs.checkpoint_names import ITER, checkpoint_name

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from hookloop.data.mixing.mixture import TrainingStream
    from hookloop.data.stream import Stream
    from hookloop.engine.hook import Hook
    from hookloop.lr_schedule import Schedule
    from hookloop.metrics.store import MetricStore
    from hookloop.parallel.ranks import Reduction
    from hookloop.writers.records import Record

Value = TypeVar("Value")
Phase = Literal["train", "val", "test", "predict"]


@dataclass(slots=True, kw_only=True, repr=False)
class Run:
    """The run in progress, as hooks see it.

    What the engine keeps besides is in `Internals`, which hooks do not see.

    Attributes:
        model: The module in training.
        optimizers: By name; ``"default"`` when there is one.
        schedules: By name of the optimizer they drive.
        train_data: The training data.
        val_data: The validation streams by name; ``""`` when there is one.
        metrics: The metric store.
        progress: Counters of completed things.
        dir: The run's directory; it is created if there are hooks, which may use it.
        config: The effective config, or an empty mapping.
        world: Rank and number of processes.
        device: Where the model is.
        accumulate: Microbatches per iteration.
        phase: ``"train"``, ``"val"``, ``"test"`` or ``"predict"``.
        stream: Name of the stream that is being read; ``"train"`` in training.
        batch: The current microbatch, on the device; on many ranks, each has its part.
        place: Which part of the data the batch is, on many ranks; None in a single process.
        output: What the model, or the step, returned.
        loss: The loss of the current microbatch.
        will_skip: Whether a hook drops the current update: set before the optimizer steps, False
            again after ``after_update``. A tensor where only the device knows. It tells and does
            not ask: the hook itself takes the gradients away.
        outcome: How the run ended; ``running`` until then.
    """

    model: torch.nn.Module
    optimizers: dict[str, torch.optim.Optimizer]
    schedules: dict[str, Schedule]
    train_data: TrainingStream | None
    val_data: dict[str, Stream]
    metrics: MetricStore
    dir: Path
    config: Mapping[str, object]
    world: World
    device: torch.device
    accumulate: int = 1
    progress: Progress = field(default_factory=Progress)
    phase: Phase = "train"
    stream: str = "train"
    batch: Any = None  # Batches and outputs are whatever the user's data and model make them.
    place: Place | None = None
    output: Any = None
    loss: Tensor | None = None
    will_skip: bool | Tensor = False
    outcome: Outcome = field(default_factory=lambda: Outcome("running"))
    # The calls of all points, which each iteration looks up; and the rest of the engine's own.
    _plan: Plan
    _internals: Internals = field(default_factory=Internals)

    if not TYPE_CHECKING:  # Type checkers must still report an unknown attribute.

        def __getattr__(self, name: str) -> object:
            raise missing_attribute(self, name, peers.RUN)

    @property
    def optimizer(self) -> torch.optim.Optimizer:
        """The optimizer, if there is only one."""
        if len(self.optimizers) != 1:
            names = ", ".join(self.optimizers) or "none"
            raise ModelError(f"run.optimizer needs a single optimizer, there are: {names}.")
        return next(iter(self.optimizers.values()))

    @property
    def stores(self) -> list[str]:
        """Where hooks keep checkpoints besides the run's directory."""
        return [store for hook in self.hooks for store in hook.stores(self.dir)]

    @property
    def hooks(self) -> tuple[Hook, ...]:
        """The hooks in their order."""
        return self._plan.hooks

    def __repr__(self) -> str:
        where = f" in '{self.dir}'" if self.hooks else ""
        ended = "" if self.outcome.status == "running" else f", {self.outcome}"
        return f"<Run{where}: {self.progress} done, phase {self.phase}{ended}>"

    @property
    def batch_size(self) -> int:
        """Samples in the current microbatch."""
        return size_of(self.batch)

    @property
    def is_interrupted(self) -> bool:
        """Whether a signal asked the run to end; work that can wait for a resume should wait."""
        return (
            self._internals.requests.stop is not None
            and self._internals.requests.stop.signal is not None
        )

    def stop(self, reason: str, *, signal: int | None = None, everywhere: bool = False) -> None:
        """Request the end of the training after this iteration; the first reason counts.

        On many ranks a request is obeyed at the next sync point, which is half a second later at
        most.
        With ``everywhere`` it is obeyed after this iteration: all ranks have to request it.
        """
        requests = self._requests(everywhere)
        if requests.stop is None:  # A later reason must not hide what ended the run.
            requests.stop = Stop(reason, signal)
            requests.any = True

    def rewind(
        self,
        to: int,
        *,
        skip: Sequence[int] = (),
        reason: str = "",
        everywhere: bool = False,
        read_again: Sequence[int] = (),
    ) -> None:
        """Request to go back to the newest checkpoint of at most ``to`` iterations.

        The run continues from there as a resume would, without the batches of the iterations that
        ``skip`` names; see `Rewind`, and for ``everywhere`` `stop`.
        """
        requests = self._requests(everywhere)
        if requests.rewind is None:
            requests.rewind = Rewind(to, tuple(skip), reason, tuple(read_again))
            requests.any = True

    def validate(self, *streams: str, everywhere: bool = False, planned: bool = False) -> None:
        """Request a validation after this iteration, on all streams or on those that are named.

        It leaves random numbers, data, buffers and plain attributes as they are, so that asking for
        one does not change the training. One that is ``planned``, because it belongs to the
        training after every so many iterations or epochs, draws from the random numbers of the
        training.

        For ``everywhere`` see `stop`.
        """
        for name in streams:
            if name not in self.val_data:
                raise DataError(f"val_data has no stream '{name}'.{nearest(name, self.val_data)}")
        requests = self._requests(everywhere)
        wanted = frozenset(streams) or True
        requests.validate = both(requests.validate, wanted)
        if planned:
            requests.planned = both(requests.planned, wanted)
        requests.any = True

    def save(self, what: Save | str | None = None, *, everywhere: bool = False) -> None:
        """Request a checkpoint after this iteration, as ``iter_<n>.pth`` if unnamed; see `stop`."""
        requests = self._requests(everywhere)
        # A request that waits is obeyed in a later iteration, and its file is named after that one.
        number = ITER if requests is self._internals.wishes else self.progress.iter
        name = what if isinstance(what, str) else checkpoint_name("iter", number)
        save = what if isinstance(what, Save) else Save(name)
        if save not in requests.saves:  # Two hooks may want the same file.
            requests.saves.append(save)
            requests.any = True

    def skip_update(self) -> NoReturn:
        """End the step of the current batch without a loss, on purpose.

        Only a ``step=`` of the Trainer can call it. The microbatches of an iteration that have a
        loss are updated with; if none has, no update is made.

        Raises:
            SkippedUpdateError: To leave the step.
        """
        raise SkippedUpdateError(
            "run.skip_update() was called outside of step=: only a step can skip its update. In a "
            "loop of your own, use continue; in a hook, drop the gradients at before_update."
        )

    def _requests(self, everywhere: bool) -> Requests:
        return (
            self._internals.requests
            if everywhere or self.world.is_alone
            else self._internals.wishes
        )

    def with_model(self, compute: Callable[[], Value]) -> Value:
        """Call a function that uses the model outside of an update, and return its result.

        A sharded model can be used in no other way: all ranks have to call this together.
        """
        return (
            compute()
            if self._internals.shards is None
            else cast("Value", self._internals.shards.forward(compute))
        )

    def gather(self, value: Value) -> list[Value]:
        """Return the values of all ranks, in their order, on every rank; all have to call it."""
        return self._internals.ranks.gather(value)

    def reduce(self, value: Value, how: Reduction = "mean") -> Value:
        """Return sum, mean, max or min of a number or tensor over all ranks, on every rank."""
        return self._internals.ranks.reduce(value, how)

    def emit(self, record: Record) -> None:
        """Send a record to all writers; if it has no step, it gets the completed iterations."""
        if self.world.is_main:
            self._internals.outbox.put(record.at(self.progress.iter))

    def fire(self, point: str, *args: object) -> None:
        """Fire a mount point that the project declared."""
        fire(self._plan.calls(point), self, *args)
