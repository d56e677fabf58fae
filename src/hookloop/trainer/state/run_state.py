"""What a checkpoint holds: collected from the run, and restored to it.

model        parameters and buffers
optimizers   by name
schedules    by name of their optimizer
scaler       of half precision, if there is one
gradients    those not yet used by an update, where the user makes the updates
progress     the counters, and a validation that is due
data         the position in the training data; of each rank, where each has data of its own
val_data     how often each validation stream was read, and its own generators
metrics      those of this very iteration; its validation, which comes later, is in the index
metric_store every series, as it stands
machine      names of those that hooks declare as measuring the machine
hooks        the state of each, by name
rng          the random number generators of each rank
workers      those of the workers of each rank, if there are several ranks
buffers      of each rank, where they differ: batch norm sees another part of each batch
undeclared   what else the training has changed, by name; of each rank, where it differs
world        on how many ranks it was made
kinds        what the parts are, to notice when a resume is given others
arguments    the plain arguments of the Trainer, to notice the same
changes      what was changed on purpose at resumes, each with its iteration
run_id       of the run that saved it, whatever its directory is called
config       the effective config, with references to the environment
environment  checksums of the numbers among these, to notice when they have changed
versions     of hookloop and torch
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from hookloop.checkpoint.state.schema import check_shapes
from hookloop.checkpoint.store.storage import is_checkpoint_directory
from hookloop.data.random.states import GeneratorStates
from hookloop.engine.plan import fire
from hookloop.engine.run import Run
from hookloop.parallel.ranks import Ranks
from hookloop.runs.policy import machine_names
from hookloop.runs.records import plain
from hookloop.secret import fingerprints
from hookloop.trainer.intended_changes import IntendedChanges, groups_as_built
from hookloop.trainer.resume_checks import compare, kinds_of
from hookloop.trainer.state.parts import (
    BuffersPart,
    DataPart,
    GeneratorsPart,
    GradientsPart,
    HooksPart,
    LoadedFrom,
    MetricsPart,
    ModelPart,
    ObserversPart,
    OptimizersPart,
    Part,
    ProgressPart,
    RanksPart,
    ScalerPart,
    SchedulesPart,
    UndeclaredPart,
    Where,
    current_metrics,
    is_model_sharded,
    undeclared_of_rank,
)
from hookloop.version import VERSION

if TYPE_CHECKING:
    from hookloop.engine.run import Run

State = MutableMapping[str, object]


class RunState:
    """The state of a run, at two depths: in a checkpoint, and in memory.

    Args:
        run: The run.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.gradients, self._generators = GradientsPart(run), GeneratorsPart(run)
        # What a run consists of, listed once, in the order in which it is restored.
        self.parts: list[Part] = [
            ModelPart(run), OptimizersPart(run), SchedulesPart(run), ScalerPart(run),
            ProgressPart(run), IntendedChanges(run), DataPart(run), MetricsPart(run),
            HooksPart(run), ObserversPart(run), UndeclaredPart(run), RanksPart(run),
            self.gradients, BuffersPart(run), self._generators,
        ]  # fmt: skip

    def gather(self) -> State:
        """Collect everything that has a state; on many ranks all of them take part."""
        state: State = {}
        for part in self.parts:
            state.update(part.state())
        state.update(facts_of(self.run))
        return state

    def restore(
        self,
        checkpoint: Mapping[str, object],
        label: str,
        change: Sequence[str] | None = (),
        *,
        trains: bool = True,
    ) -> GeneratorStates | None:
        """Restore everything; return the random numbers, which the loop restores.

        Args:
            checkpoint: The state.
            label: Where that comes from, for messages.
            change: What differs on purpose, see `Resume`; None if the checkpoint is of this very
                run, and nothing has to be compared.
            trains: Whether a training continues from it.
        """
        run, checkpoint = self.run, _from_older_version(checkpoint)
        # The whole file is checked first, so that most damaged files are rejected before anything
        # changes.
        check_shapes(checkpoint, label, has_data=run.train_data is not None)
        changes = compare(run, checkpoint, label, change) if change is not None else []
        run._internals.undeclared.add_groups(undeclared_of_rank(run, checkpoint))
        built = groups_as_built(run.optimizers)
        reads_shards = is_model_sharded(run.model) and is_checkpoint_directory(Path(label))
        source = LoadedFrom(label, changes, built, reads_shards, trains)
        for part in self.parts:
            part.load(checkpoint, source)
        return self._generators.loaded

    def reset(self) -> None:
        """Forget what a new process would not have, and a checkpoint does not replace."""
        for part in self.parts:
            part.reset()

    def keep(self, *keys: str, where: Where = "device") -> Callable[[], None]:
        """Copy some parts, and return what puts them back, in place and to the last bit."""
        # The generators, which are last, are read first and restored last: the others may draw.
        kept = [part.keep(where) for part in reversed(self.parts) if part.key in keys]

        def put_back() -> None:
            for one in reversed(kept):
                one()

        return put_back

    @contextmanager
    def kept(self, *keys: str, where: Where = "device") -> Iterator[None]:
        """Put some parts back at the end."""
        put_back = self.keep(*keys, where=where)
        try:
            yield
        finally:
            put_back()


def facts_of(run: Run) -> dict[str, object]:
    """Return what a checkpoint holds that is not state, to compare or to read."""
    return {
        "machine": machine_names(name for hook in run.hooks for name in hook.writes),
        "kinds": kinds_of(run),
        "arguments": run._internals.arguments,
        "run_id": run._internals.id,
        "config": plain(run.config),  # A file that is read back holds plain types only.
        "environment": fingerprints(run.config),
        "versions": {"hookloop": VERSION, "torch": str(torch.__version__)},
    }


def _from_older_version(checkpoint: Mapping[str, object]) -> Mapping[str, object]:
    """Return a checkpoint with the parts that version 0.1 kept under another name."""
    series = checkpoint.get("metrics")
    if "metric_store" in checkpoint or not isinstance(series, Mapping):
        return checkpoint
    store = {name: _settled(one) for name, one in series.items() if isinstance(one, Mapping)}
    return {**checkpoint, "metric_store": store}


def _settled(series: Mapping[str, object]) -> dict[str, object]:
    """Return a series that counts as read: version 0.1 had other readers."""
    past, pending = series.get("past"), series.get("pending")
    came = past if isinstance(past, int) else 0
    came += len(pending) if isinstance(pending, list) else 0
    return {**series, "marks": {}, "start": came}


class RunAsOrigin:
    """A run, as `Checkpoints` sees it.

    Args:
        run: The run.
        state: Its state.
        restore_home: Creates the run's directory again if it was deleted; returns whether it was.
    """

    def __init__(
        self, run: Run, state: RunState, restore_home: Callable[[], bool] = lambda: False
    ) -> None:
        self._run = run
        self._state = state
        self.restore_home = restore_home

    @property
    def ranks(self) -> Ranks:
        """The connection to the other ranks."""
        return self._run._internals.ranks

    @property
    def is_sharded(self) -> bool:
        """Whether each rank writes its part of the model."""
        return self._run._internals.shards is not None

    @property
    def home(self) -> Path:
        """The run's directory, as it is now."""
        return Path(self._run.dir)

    @property
    def iter(self) -> int:
        """Iterations completed now."""
        return self._run.progress.iter

    @property
    def epoch(self) -> int:
        """Epochs completed now."""
        return self._run.progress.epoch

    def gather(self) -> State:
        """Collect the state, and show it to hooks; all ranks take part."""
        checkpoint = self._state.gather()
        # Before the copy, so that what hooks add is copied as well.
        fire(self._run._plan.before_save_checkpoint, self._run, checkpoint)
        return checkpoint

    def metrics(self) -> dict[str, float]:
        """Return the metrics of this iteration."""
        return current_metrics(self._run)

    def announce(self) -> None:
        """Let the loop ask for news; called in the thread that writes."""
        # A flag, so that hooks are called by the loop, in the thread that trains. On many ranks it
        # asks at their next sync point. Each call of the Trainer makes new requests.
        if self._run.world.is_alone:
            self._run._internals.requests.any = True
