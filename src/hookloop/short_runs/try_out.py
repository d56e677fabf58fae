"""Try a training: every part once and small, in a directory of its own.

Two iterations, two batches of validation, a save, a restore into a trainer that is built again, and
a test. Hooks that send to a service are left out, and so are those that write outside of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, cast

import torch

from hookloop.checkpoint.saving.snapshot import Snapshot
from hookloop.checkpoint.state.compare import Difference, compare
from hookloop.checkpoint.store.store import CheckpointStore
from hookloop.data.limits import PHASES
from hookloop.data.random.states import generators_kept
from hookloop.data.stream import open_streams
from hookloop.engine.hook import Hook, Priority
from hookloop.errors import HookloopError
from hookloop.every import Every
from hookloop.parallel.launched import report_iteration
from hookloop.parallel.memory import device_memory, host_memory
from hookloop.parallel.world import World
from hookloop.runs.checkpoint_names import SUFFIX, directory_name
from hookloop.short_runs.short_run import Arguments, short_run, shortened
from hookloop.trainer.counting import start_counting
from hookloop.trainer.inputs import expected_progress
from hookloop.trainer.settings import Validation, gathered, spread
from hookloop.trainer.state.run_state import RunState
from hookloop.trainer.val_intervals import StreamValidation, make_validation

if TYPE_CHECKING:
    from hookloop.engine.progress import Progress
    from hookloop.engine.run import Run
    from hookloop.trainer.trainer import Trainer

COUNT = 2
"""Iterations, and batches of an evaluation."""
FILE = f"try{SUFFIX}"
COMPARED = ("model", "optimizers", "schedules", "scaler", "progress", "data", "val_data", "hooks")
"""The parts of a checkpoint that are the same again right after it was loaded."""
OF_RANKS = ("buffers", "workers")
"""The same, of what each rank has of its own."""


@dataclass
class Trial:
    """What a trial has found.

    Attributes:
        ranks: How many processes there were.
        iters: Iterations that were made; fewer than two if a hook ended the training.
        first_iter_seconds: Seconds of the first one, with all that happens once.
        seconds_per_iter: Seconds of the last one, with the loading of its batches.
        val_batches: Batches of the validation.
        seconds_per_val_batch: Seconds of the last one; None without validation.
        test_batches: Batches of the test.
        memory: The highest use of memory in MiB: ``rss_peak``, and on a GPU ``device_peak``; of
            many ranks that of the one with the most.
        checkpoint_bytes: The size of a checkpoint.
        total_iters: Iterations of the whole training; None if unknown.
        validations: Validations of the whole training; None if unknown, or if the streams have
            intervals of their own.
        total_val_batches: Batches of one of them; None if unknown.
        all_val_batches: Batches of all of them; None if unknown.
        hours: An estimate of the time of the whole training; None if unknown.
        is_restored: Whether a new trainer that loaded the checkpoint has the same bits.
        differences: Where it has others.
        left_out: Hooks that were left out, with the reason.
        failed_hooks: Hooks that failed and were switched off.
        metrics: The last value of each metric.
    """

    ranks: int = 1
    iters: int = 0
    first_iter_seconds: float = 0.0
    seconds_per_iter: float = 0.0
    val_batches: int = 0
    seconds_per_val_batch: float | None = None
    test_batches: int = 0
    memory: dict[str, float] = field(default_factory=dict)
    checkpoint_bytes: int = 0
    total_iters: int | None = None
    validations: int | None = None
    total_val_batches: int | None = None
    all_val_batches: int | None = None
    hours: float | None = None
    is_restored: bool = False
    differences: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    failed_hooks: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)


@generators_kept()
def try_out(make: Callable[[Path, str | bool], Arguments], scratch: Path) -> Trial:
    """Train, validate, save, restore and test, each as briefly as possible.

    Args:
        make: Returns the arguments of a Trainer, given its directory and what it resumes; it is
            called twice, because the restore begins with new objects.
        scratch: A directory for the runs, which the caller removes.

    Raises:
        Exception: Whatever a part of the training raises.
    """
    trial, probe, tester = Trial(), Probe(), Probe()

    def briefly(run_dir: Path) -> Arguments:
        given = make(run_dir, False)
        _expect(trial, given)
        return _each_once(given)

    try:
        short = short_run(
            briefly, iters=COUNT, hooks=[probe], run_dir=scratch / "run", may_end_early=True
        )
    except BaseException:
        report_iteration(len(probe.trained))
        raise
    trainer, run = short.trainer, short.trainer.run
    trial.left_out, outcome = dict(short.left_out), short.outcome
    trial.ranks, trial.metrics = run.world.size, dict(outcome.metrics)
    for disabled in run.gather(outcome.disabled):
        trial.failed_hooks |= {one.hook: str(one) for one in disabled}
    _measure(trial, trainer, probe)
    again = _each_once(make(scratch / "again", str(_checkpoint_of(trainer))))
    second, _ = shortened(again, iters=COUNT, hooks=[tester])
    differences = _restore(second, trainer)
    trial.is_restored, trial.differences = not differences, [str(one) for one in differences]
    if second.run._internals.test_data:
        trial.metrics |= dict(second.test())
        trial.test_batches = len(tester.evaluated)
    # At the end, so that no rank needs the directory any more when the first one removes it.
    for memory in run.gather(host_memory() | device_memory(run.device)):
        for name in (name for name in memory if name.endswith("_peak")):
            trial.memory[name] = max(memory[name], trial.memory.get(name, 0.0))
    return trial


def _checkpoint_of(trainer: Trainer) -> Path:
    """Return the checkpoint of the trial; that of a sharded model is a directory."""
    run = trainer.run
    return run.dir / (FILE if run._internals.shards is None else directory_name(FILE))


class Probe(Hook):
    """Takes the time of iterations and batches, and requests the checkpoint of the trial."""

    name = "try"
    priority = Priority.LOWEST  # After all others: their work belongs to the iteration.
    draws_random_numbers = False

    def __init__(self) -> None:
        self.trained: list[float] = []
        self.evaluated: list[float] = []
        self._last = 0.0

    def before_run(self, run: Run) -> None:
        """Count memory from here on."""
        if run.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(run.device)

    def before_train_epoch(self, run: Run) -> None:
        """Start the clock."""
        self._last = _now(run)

    def after_train_iter(self, run: Run) -> None:
        """Take the time of an iteration."""
        self.trained.append(self._lap(run))

    def after_train(self, run: Run) -> None:
        """Save, also where a hook ended the training early."""
        run.save(FILE, everywhere=True)

    def before_val_epoch(self, run: Run) -> None:
        """Start the clock."""
        self._last = _now(run)

    def after_val_iter(self, run: Run) -> None:
        """Take the time of a batch."""
        self.evaluated.append(self._lap(run))

    def before_test_epoch(self, run: Run) -> None:
        """Start the clock."""
        self._last = _now(run)

    def after_test_iter(self, run: Run) -> None:
        """Take the time of a batch."""
        self.evaluated.append(self._lap(run))

    def _lap(self, run: Run) -> float:
        before, self._last = self._last, _now(run)
        return self._last - before


def _now(run: Run) -> float:
    if run.device.type == "cuda":  # It computes while the process continues.
        torch.cuda.synchronize(run.device)
    return perf_counter()


def _each_once(given: Arguments) -> Arguments:
    """Return the arguments of a training that makes each thing once."""
    by_path = spread(given)
    limit = cast("Mapping[str, int]", by_path.get("data.limit") or {})
    changed: dict[str, object] = {
        "data.limit": {phase: min(COUNT, limit.get(phase, COUNT)) for phase in PHASES},
        "max_epochs": 1,
        "max_iters": None,
        "data.epoch_iters": None,
    }
    return {**gathered(by_path | changed), "val_every": "1 epoch"}


def _measure(trial: Trial, trainer: Trainer, probe: Probe) -> None:
    """Note how long the parts of the training took, and what the whole would take."""
    trial.iters = len(probe.trained)
    trial.first_iter_seconds, trial.seconds_per_iter = probe.trained[0], probe.trained[-1]
    trial.val_batches = len(probe.evaluated)
    trial.seconds_per_val_batch = probe.evaluated[-1] if probe.evaluated else None
    saved = _checkpoint_of(trainer)
    files = saved.iterdir() if saved.is_dir() else [saved]
    trial.checkpoint_bytes = sum(file.stat().st_size for file in files)
    if trial.total_iters is None:
        return
    seconds = trial.total_iters * trial.seconds_per_iter
    if trial.all_val_batches and trial.seconds_per_val_batch:
        seconds += trial.all_val_batches * trial.seconds_per_val_batch
    trial.hours = seconds / 3600


def _expect(trial: Trial, named: Arguments) -> None:
    """Note the length of the whole training and of its validations."""
    progress = expected_progress(named, named.get("train_data"))
    trial.total_iters = progress.total_iters
    by_path = spread(named)
    data = by_path.get("val_data")
    limit = cast("Mapping[str, int]", by_path.get("data.limit") or {})
    if data is None:
        trial.validations = trial.total_val_batches = trial.all_val_batches = 0
        return
    streams = open_streams(data, "val_data", limit=limit.get("val"))  # type: ignore[arg-type]
    lengths = {name: source.num_batches for name, source in streams.items()}
    if (overfit := cast("int | None", by_path.get("data.overfit"))) is not None:
        lengths = dict.fromkeys(lengths, overfit)
    given = Validation.parse(named.get("val_every") or "1 epoch")
    when = make_validation(given.every, 0, False, streams, World())
    intervals = when.intervals if isinstance(when, StreamValidation) else {}
    counts = {
        name: _count_validations(intervals.get(name, when.every), progress) for name in lengths
    }
    trial.validations = None if intervals else next(iter(counts.values()))
    trial.total_val_batches = _sum(lengths.values())
    trial.all_val_batches = _sum(_times(counts[name], lengths[name]) for name in lengths)


def _times(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one * other


def _sum(numbers: Iterable[int | None]) -> int | None:
    """Add numbers; None if one of them is unknown."""
    known = list(numbers)
    return None if None in known else sum(number or 0 for number in known)


def _count_validations(every: Every, progress: Progress) -> int | None:
    """Return how often a training validates; None if that depends on the clock."""
    total = progress.total_iters
    if every.unit == "iters" and total is not None:
        return max(1, int(total // every.count))
    if every.unit == "epochs":
        epochs = progress.max_epochs
        if total is not None and progress.epoch_iters is not None:
            epochs = -(-total // progress.epoch_iters)
        return None if epochs is None else max(1, int(epochs // every.count))
    return None


def _restore(second: Trainer, first: Trainer) -> list[Difference]:
    """Load the checkpoint into another trainer; return where it is not what was saved."""
    if second.run.model is first.run.model:  # A Python config may hold the objects themselves.
        if first.run._internals.shards is not None:
            raise HookloopError(
                "The config holds the model itself, whose parameters are spread over the ranks by "
                "now: name a function or a class that builds it."
            )
        with torch.no_grad():
            for parameter in second.run.model.parameters():
                parameter.zero_()
    second.check_hooks()
    start_counting(second._loop, second._count_tokens)  # Otherwise it would take over no count.
    second._planner.use()
    with second._session.running():
        run, saved = second.run, _checkpoint_of(first)
        if run.world.is_alone:
            state = Snapshot().take(RunState(run).gather())
            return compare(_compared(_load(saved)), _compared(state))
        # Each rank has a part of the state, and a checkpoint has all of them.
        run.save(FILE, everywhere=True)
        second._loop.save_requested()
        own = _checkpoint_of(second)
        found = compare(_of_ranks(saved), _of_ranks(own)) if run.world.is_main else []
        return run._internals.ranks.share(found)


def _load(path: Path) -> Mapping[str, object]:
    return CheckpointStore(path.parent).load(path.name)


def _of_ranks(path: Path) -> dict[str, object]:
    """Return what is compared of a checkpoint of many ranks."""
    checkpoint = _load(path)
    return {**_compared(checkpoint), **{part: checkpoint.get(part) for part in OF_RANKS}}


def _compared(checkpoint: Mapping[str, object]) -> dict[str, object]:
    parts = {part: checkpoint.get(part) for part in COMPARED}
    # Data that is built without a seed has another order. The restore has warned of it.
    return {**parts, "data": _without_orders(cast("Mapping[str, object]", parts["data"]))}


def _without_orders(data: Mapping[str, object]) -> dict[str, object]:
    kept = {name: value for name, value in data.items() if name != "orders"}
    if isinstance(streams := kept.get("streams"), Mapping):
        kept["streams"] = {name: _without_orders(one) for name, one in streams.items()}
    return kept
