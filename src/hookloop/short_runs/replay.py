"""Repeat iterations of a run bit for bit, in a directory that goes away.

Nothing is obeyed twice: a save, a stop or a rewind that a hook asks for is dropped, and nothing is
sent. What happened to the run from outside is repeated from its record.
"""

from __future__ import annotations

import logging
from collections.abc import (
    Callable,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
    Sequence,
)
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from operator import eq
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, cast

from hookloop.checkpoint.saving.request import Save
from hookloop.checkpoint.state.compare import Difference as PartDifference
from hookloop.checkpoint.state.compare import compare
from hookloop.checkpoint.store.index import Saved
from hookloop.checkpoint.store.store import CheckpointStore
from hookloop.engine.hook import Hook, Priority, reaches_outside
from hookloop.engine.plan import fire
from hookloop.errors import CheckpointError
from hookloop.every import Every, count_of
from hookloop.hooks.ending.answer_requests import act
from hookloop.hooks.ending.requeue import Requeue
from hookloop.hooks.ending.stop_on_signal import StopOnSignal
from hookloop.hooks.measuring.record_environment import RecordEnvironment, describe_torch
from hookloop.hooks.saving.save_checkpoint import SaveCheckpoint
from hookloop.hooks.showing.show_progress import ShowProgress
from hookloop.hooks.writing._writing import Writing
from hookloop.hooks.writing.write_to import WriteTo
from hookloop.requests import Rewind, Stop
from hookloop.runs import environment
from hookloop.runs.afterwards import add_afterwards
from hookloop.runs.asking import Request
from hookloop.runs.fingerprints import (
    different_parts,
    present_fingerprints,
    read_fingerprints,
)
from hookloop.runs.git import Repository
from hookloop.runs.layout import RunDir
from hookloop.runs.metrics_file import STAMPS, records
from hookloop.runs.policy import NOT_COMPARED, is_of_machine
from hookloop.runs.records import plain
from hookloop.runs.same_metrics import Difference, compare_metrics
from hookloop.runs.trees import differences
from hookloop.short_runs.route import Line, ReplayError, Route, Stretch
from hookloop.short_runs.scratch import scratch_directory
from hookloop.short_runs.short_run import short_run
from hookloop.trainer.intended_changes import Resume
from hookloop.trainer.settings import Validation
from hookloop.trainer.trained_with import describe_training
from hookloop.writers.base import Writer
from hookloop.writers.records import Record, Scalars

if TYPE_CHECKING:
    from hookloop.engine.run import Run

Make = Callable[[Path, Line], Mapping[str, object]]
"""Returns the arguments of a new Trainer, given its directory and the line of the start."""

OWNER = "replay"
END = "replay_end.pth"
NEVER = 10**15
"""Iterations between validations that a clock asked for: the record says when they were made."""

LEFT_OUT = (RecordEnvironment, Requeue, ShowProgress, StopOnSignal)
"""Hooks that say where a run is, or obey what came from outside."""

_OF_OTHERS = ("changes", "side_randomness")
"""Parts of a checkpoint that depend on who looked on: what was asked, what observers drew."""

OF_FILES = (Writing, SaveCheckpoint)
"""Hooks whose state is about the files that they have written."""

_WHERE = ("system", "driver", "cpu", "ranks")
"""What two environments may differ in without another result."""

_log = logging.getLogger("hookloop")


@dataclass(frozen=True)
class Checked:
    """Something that the run recorded, and that the replay met.

    Attributes:
        what: A metric, or the file of a checkpoint.
        iter: The iteration.
        difference: How the replay differs; empty if it is the same to the last bit.
    """

    what: str
    iter: int
    difference: str = ""

    @property
    def is_equal(self) -> bool:
        """Whether it is the same to the last bit."""
        return not self.difference


@dataclass(frozen=True)
class Replay:
    """What a replay has shown.

    Attributes:
        first: The first iteration that was asked for.
        last: The last one, after which the replay ended.
        origin: Where it began: a checkpoint of the run, or the beginning.
        checked: What was compared with what the run recorded, the earliest first.
        recorded: The metrics that were recorded afterwards.
        why_not: Why the replay may not be exact; empty if nothing is known.
        seconds: How long it took.
        predicted: How long it was to take, as far as that was known before.
        state: What a checkpoint after the last iteration would hold.
        left_out: The hooks that it did without, each with the reason.
        apart: The hooks whose state is about files, or that only one of the two had.
        begun: The iteration that was completed where it began.
        lines_apart: The lines of metrics that only the run or only the replay has, for people.
    """

    first: int
    last: int
    origin: str
    checked: Sequence[Checked]
    recorded: Sequence[str]
    why_not: Sequence[str]
    seconds: float
    predicted: float | None
    state: Mapping[str, object] = field(repr=False)
    left_out: Mapping[str, str] = field(default_factory=dict)
    apart: frozenset[str] = frozenset()
    begun: int = 0
    lines_apart: Sequence[str] = ()

    def compare(self, checkpoint: Mapping[str, object]) -> list[PartDifference]:
        """Compare a checkpoint of the last iteration with the state of the replay."""
        return compare(*(_comparable(one, self.apart) for one in (checkpoint, self.state)))

    @property
    def difference(self) -> Checked | None:
        """The first thing that differs from what the run recorded; None if nothing does."""
        return next((one for one in self.checked if not one.is_equal), None)


def replay_run(
    make: Make,
    routes: Sequence[Route],
    *,
    hooks: Sequence[Hook] = (),
    beside: Sequence[Hook] = (),
    anyway: bool = False,
    tell: Callable[[str], object] = str,
    begun: float | None = None,
) -> Replay:
    """Repeat iterations of a run.

    Args:
        make: Builds the arguments of its Trainer, for each stretch of the way.
        routes: The ways to the iterations, the best first; the others are for a run that is being
            trained, and deletes its checkpoints.
        hooks: Hooks whose metrics are recorded afterwards.
        beside: Hooks that record nothing.
        anyway: Whether to replay what cannot be exact.
        tell: Is told what is done, before the first iteration.
        begun: When the process began to prepare this, by ``perf_counter``.

    Raises:
        ReplayError: If it would not be exact, or the iteration was not reached.
    """
    for hook in (*hooks, *beside):
        if hook.takes_part_in_training:
            raise ReplayError(
                f"'{hook.name}' takes part in the training, so that iterations with it would be "
                "other ones. Begin a new run from the checkpoint instead: resume=."
            )
    begun = perf_counter() if begun is None else begun
    for route in routes:
        try:
            return _Replaying(make, route, hooks, beside, anyway, tell, begun).run()
        except CheckpointError:
            # A run that is being trained deletes old ones.
            if route.checkpoint is None or route.checkpoint.path.exists() or route is routes[-1]:
                raise
    raise ReplayError("There is no way to this iteration.")


class _Replaying:
    """One replay on one route."""

    def __init__(
        self,
        make: Make,
        route: Route,
        hooks: Sequence[Hook],
        beside: Sequence[Hook],
        anyway: bool,
        tell: Callable[[str], object],
        begun: float,
    ) -> None:
        self._make = make
        self._route = route
        self._given = hooks
        self._beside = beside
        self._anyway = anyway
        self._tell = tell
        self._begun = begun
        self._why_not: list[str] = []
        self._predicted: float | None = None
        self._has_clock = False
        self._found = _Collect()
        self._lines_apart: list[str] = []
        self._fingerprints = present_fingerprints(route.run)
        self._lines = {_key_of(one) for one in records(route.run.metrics_file, is_lenient=True)}

    def run(self) -> Replay:
        """Repeat every stretch, and compare."""
        route = self._route
        for start in self._starts():
            ranks = start.get("ranks")
            if ranks not in (1, None) and not _has_logical_ranks(start):
                self._object(f"it was trained on {ranks} ranks, and is replayed on one")
        self._reject()
        checked: list[Checked] = []
        left_out: dict[str, str] = {}
        apart: set[str] = set()
        wanted = [(one, self._load(one)) for one in route.checkpoints if one.kind == "periodic"]
        with scratch_directory("replay") as folder, quiet():
            place: Saved | Path | None = route.checkpoint
            for number, stretch in enumerate(route.stretches):
                directory = Path(folder) / str(number) / "run"
                steps = _Steps(self, stretch, wanted)
                short = short_run(
                    partial(self._arguments, stretch),
                    iters=None,  # Schedules depend on the limits: a hook ends it.
                    hooks=[*self._observers(stretch), *self._beside, steps],
                    start=None if place is None else _resume(place, stretch),
                    leave_out=_why_left_out,
                    run_dir=directory,
                )
                if short.iters != stretch.last:
                    raise ReplayError(
                        f"The replay ended after iteration {short.iters}, before {stretch.last} "
                        f"({short.outcome})."
                    )
                left_out |= short.left_out
                hooks = short.trainer.run.hooks
                apart |= {*left_out, *(one.name for one in hooks if isinstance(one, OF_FILES))}
                # Whatever takes part in the training has been found to be here.
                here = {one.name for one in hooks}
                apart |= {
                    name for _, held in wanted for name in _hooks_in(held) if name not in here
                }
                apart |= {"metrics", "metric_store"} if self._given else set()
                checked += self._compare(directory, stretch, wanted, apart)
                place = directory / END
            state = CheckpointStore(directory).load(END)
        recorded = self._record(checked)
        return Replay(
            route.first,
            route.last,
            route.origin,
            sorted(checked, key=lambda one: (one.iter, one.is_equal)),
            recorded,
            self._why_not,
            perf_counter() - self._begun,
            self._predicted,
            state,
            left_out,
            frozenset(apart),
            route.begun,
            self._lines_apart,
        )

    def begin(self, run: Run, stretch: Stretch) -> None:
        """Reject what would not be exact."""
        source = run.train_data
        if source is not None and source.inexact is not None:
            self._object(f"{source.name} is not read the same way again: {source.inexact}")
        if stretch is self._route.stretches[0]:
            for line in self._differing(run):
                self._object(line)
        self._reject()

    def begin_iterations(self, run: Run, stretch: Stretch) -> None:
        """Say where it begins, and how long it takes; the start is known by now."""
        if stretch is not self._route.stretches[0]:
            return
        here = {hook.name for hook in run.hooks}
        for name in cast("Sequence[str]", stretch.start.get("takes_part") or ()):
            if name not in here:
                self._object(f"the hook '{name}', which takes part in the training, is missing")
        for line in self._other_parts(run, stretch.start):
            self._object(line)
        self._reject()
        route, start = self._route, perf_counter() - self._begun
        each = route.seconds_per_iter()
        if each is not None:
            self._predicted = start + route.iters * each
        long = (
            f", about {_seconds(self._predicted)} (start {_seconds(start)}, {_seconds(each)} each)"
            if self._predicted is not None and each is not None
            else ""
        )
        self._tell(f"from {route.origin}, {count_of(route.iters, 'iteration')}{long}")

    def _object(self, reason: str) -> None:
        if reason not in self._why_not:
            self._why_not.append(reason)

    def _reject(self) -> None:
        if self._why_not and not self._anyway:
            raise ReplayError(
                f"'{self._route.run.path}' cannot be replayed exactly: "
                f"{'; '.join(self._why_not)}. --anyway (anyway=True) replays it all the same."
            )

    def _starts(self) -> list[Line]:
        return list({id(one.start): one.start for one in self._route.stretches}.values())

    def _differing(self, run: Run) -> Iterator[str]:
        """Yield how the environment differs from that of the starts on the way."""
        home = self._route.run.path
        here = environment.describe_process(home) | describe_torch(run.device)
        written = environment.read_starts(home)
        if any("git" in one for one in written):
            repository = Repository(Path.cwd())
            repository.is_known(10.0)
            here["git"] = repository.state() or None
        for start in self._starts():
            # The list of the starts has less of the first ones, and the hook may be left out.
            more = next((one for one in reversed(written) if one.get("iter") == start["iter"]), {})
            versions = cast("Mapping[str, object]", start.get("versions") or {})
            then = {**more, **start, **versions}
            packages = {}
            if isinstance(then.get("packages"), Mapping):
                now = cast("Mapping[str, object]", here["packages"])
                old = cast("Mapping[str, object]", then["packages"])
                packages = {name: value for name, value in old.items() if name in now}
            both = [
                {name: one[name] for name in one if name not in (*_WHERE, "packages")}
                | {"packages": {name: held.get(name) for name in packages}}
                for one, held in (
                    (then, packages), (here, cast("Mapping[str, object]", here["packages"])),
                )
            ]  # fmt: skip
            # How many processes there were is judged by itself.
            of_ranks = ("WORLD_SIZE:", "LOCAL_WORLD_SIZE:")
            lines = environment.compare(*both)
            yield from (one for one in lines if not one.startswith(of_ranks))
            if (device := start.get("device")) not in (None, str(run.device)):
                yield f"device: {device} -> {run.device}"

    def _other_parts(self, run: Run, start: Line) -> Iterator[str]:
        """Yield what a script trains with now that the run was not trained with."""
        then = start.get("trained_with")
        if not isinstance(then, Mapping):  # A config says all of it.
            return
        now = plain(describe_training(run))
        ours = {"hooks", *(["val_every"] if self._has_clock else ()), *NOT_COMPARED}
        sides = [
            {name: value for name, value in one.items() if name not in ours}
            for one in (then, cast("Mapping[str, object]", now))
        ]
        for one in differences(sides[0], sides[1], is_equal=eq):
            yield str(one)

    def _arguments(self, stretch: Stretch, directory: Path) -> Mapping[str, object]:
        given = dict(self._make(directory, stretch.start))
        given |= stretch.limits
        when = Validation.parse(given.get("val_every", "1 epoch"))
        every = when.every
        if isinstance(every, Every | int | str) and Every.parse(every).unit == "seconds":
            given["val_every"], self._has_clock = replace(when, every=NEVER), True
        return given

    def _observers(self, stretch: Stretch) -> list[Hook]:
        if not self._given or stretch.last < self._route.first:
            return []
        return [*self._given, WriteTo(self._found, every=1).named("recorded_afterwards")]

    def _load(self, saved: Saved) -> dict[str, object]:
        try:
            return CheckpointStore(saved.location).load(saved.name)
        except CheckpointError as error:
            _log.info("%s", error)
            return {}

    def _compare(
        self,
        directory: Path,
        stretch: Stretch,
        wanted: Sequence[tuple[Saved, Mapping[str, object]]],
        apart: set[str] | frozenset[str],
    ) -> list[Checked]:
        run = self._route.run
        found: list[Checked] = []
        if run.metrics_file.is_file() and (directory / run.metrics_file.name).is_file():
            numbers = compare_metrics(run.path, directory)
            begun = max(stretch.first, 0)
            different = {
                (one.name, one.iter): one
                for one in numbers.differences
                if begun < one.iter <= stretch.last
            }
            for record in records(directory / run.metrics_file.name, is_lenient=True):
                iteration = cast("int", record["iter"])
                if not begun < iteration <= stretch.last or _key_of(record) not in self._lines:
                    continue
                names = [name for name in record if name not in STAMPS]
                unlike = [one for name in names if (one := different.get((name, iteration)))]
                found.append(Checked("metrics", iteration, _said(unlike)))
        self._lines_apart += _lines_apart(
            run.metrics_file, directory / run.metrics_file.name, stretch
        )
        for line in read_fingerprints(RunDir(directory)):
            iteration = cast("int", line["iter"])
            known = self._fingerprints.get(iteration)
            if known is not None and max(stretch.first, 0) < iteration <= stretch.last:
                unlike_ones = different_parts(known, line)
                said = f"the {', '.join(unlike_ones)} differ" if unlike_ones else ""
                found.append(Checked("fingerprint", iteration, said))
        store = CheckpointStore(directory)
        for saved, then in wanted:
            name = _copy_of(saved)
            if then and (directory / name).exists():
                now = store.load(name)
                sides = [_comparable(one, apart) for one in (then, now)]
                unlike_parts = compare(*sides)
                what = "; ".join(map(str, unlike_parts))
                found.append(Checked(saved.name, saved.iter, what))
        return found

    def _record(self, checked: Sequence[Checked]) -> list[str]:
        """Write what the given hooks have recorded."""
        if not self._given:
            return []
        route = self._route
        own = {
            name for record in records(route.run.metrics_file, is_lenient=True) for name in record
        }
        patterns = [name for hook in self._given for name in hook.writes]
        by = {
            "hooks": [hook.name for hook in self._given],
            "from": route.origin,
            "checked": bool(checked) and all(one.is_equal for one in checked),
        }
        lines = []
        for one in self._found.scalars:
            values = {
                name: value
                for name, value in one.values.items()
                if name not in own
                and (not is_of_machine(name) or is_of_machine(name, patterns))
                and name.partition("/")[0] != "lr"
            }
            if values and route.first <= one.step <= route.last:
                stamps = {"phase": one.phase, "span": one.span, "iter": one.step}
                lines.append({**stamps, "epoch": one.epoch, **values})
        return add_afterwards(route.run, lines, by, branch=route.branch)


class _Steps(Hook):
    """Repeats what happened from outside, lets nothing be obeyed, and ends the replay."""

    name = "replay_steps"
    priority = Priority.LOWEST
    takes_part_in_training = True
    draws_random_numbers = False

    def __init__(
        self,
        replaying: _Replaying,
        stretch: Stretch,
        wanted: Sequence[tuple[Saved, Mapping[str, object]]],
    ) -> None:
        self._replaying = replaying
        self._stretch = stretch
        self._stop: Stop | None = None
        self._wanted = {
            (one.iter, cast("Mapping[str, object]", held["progress"]).get("stage")): one
            for one, held in wanted
            if held
        }

    def before_run(self, run: Run) -> None:
        """Reject what would not be exact."""
        self._replaying.begin(run, self._stretch)

    def after_load_checkpoint(self, run: Run, checkpoint: MutableMapping[str, object]) -> None:
        """Leave out the data that a rewind left out."""
        if (rewind := self._stretch.rewind) is not None:
            progress = dict(cast("Mapping[str, object]", checkpoint["progress"]))
            progress["left_out"] = tuple(_numbers(rewind, "left_out"))
            checkpoint["progress"] = progress

    def before_train(self, run: Run) -> None:
        """Say what is done; repeat what happened right after the checkpoint."""
        self._drop(run)
        if self._stretch.rewind is not None:
            line = self._stretch.rewind
            now = run.progress.iter
            skip = tuple(one for one in _numbers(line, "skip") if one > now)
            fire(run._plan.after_rewind, run, Rewind(now, skip, str(line.get("reason") or "")))
        self._repeat(run)
        self._replaying.begin_iterations(run, self._stretch)

    def before_epoch(self, run: Run) -> None:
        """Drop requests."""
        self._drop(run)

    def before_train_epoch(self, run: Run) -> None:
        """Drop requests."""
        self._drop(run)

    def after_train_iter(self, run: Run) -> None:
        """Drop requests; repeat what was done here, and end if this is the last iteration."""
        self._drop(run)
        now = run.progress.iter
        self._keep(run, "inside")
        if now > self._stretch.first:
            self._repeat(run)
        if now == self._stretch.last:
            # Here and not at the end of the training, when hooks conclude what they do.
            run.save(Save(END, owner=OWNER), everywhere=True)
            run.stop("the replay is over", everywhere=True)
            self._stop = run._internals.requests.stop

    def after_train_epoch(self, run: Run) -> None:
        """Drop requests."""
        self._drop(run)
        self._keep(run, "closing")

    def after_val(self, run: Run) -> None:
        """Drop requests."""
        self._drop(run)

    def after_epoch_profile(self, run: Run) -> None:
        """Drop requests."""
        self._drop(run)
        self._keep(run, "between")

    def after_train(self, run: Run) -> None:
        """Drop requests."""
        self._drop(run)

    def before_save_checkpoint(self, run: Run, checkpoint: MutableMapping[str, object]) -> None:
        """Remove this hook from the checkpoint."""
        cast("dict[str, object]", checkpoint["hooks"]).pop(self.name, None)

    def _drop(self, run: Run) -> None:
        requests = run._internals.requests
        requests.stop, requests.rewind = self._stop, None
        requests.saves = [save for save in requests.saves if save.owner == OWNER]

    def _keep(self, run: Run, stage: str) -> None:
        saved = self._wanted.get((run.progress.iter, stage))
        if saved is not None:
            run.save(Save(_copy_of(saved), owner=OWNER), everywhere=True)

    def _repeat(self, run: Run) -> None:
        now = run.progress.iter
        for settings in self._stretch.changed.get(now, ()):
            request = Request(id="replay", do="set", settings=dict(settings), by="the replay")
            run._internals.asked.append(partial(act, request))
            run._internals.requests.any = True
        streams = self._stretch.validated.get(now)
        if streams is not None and run.val_data:
            run.validate(*(name for name in streams if name in run.val_data), everywhere=True)


class _Collect(Writer):
    """Keeps the numbers that a replay writes."""

    name = "replay"

    def __init__(self) -> None:
        self.scalars: list[Scalars] = []

    def write(self, records: Iterable[Record]) -> None:
        self.scalars += [one for one in records if isinstance(one, Scalars)]


def _why_left_out(hook: Hook) -> str | None:
    if isinstance(hook, LEFT_OUT):
        return f"{type(hook).__name__} has nothing to do in a replay"
    return reaches_outside(hook)


def _resume(place: Saved | Path, stretch: Stretch) -> Resume:
    path = place.path if isinstance(place, Saved) else place
    if isinstance(place, Saved) and "://" in place.location:
        return Resume(f"{place.location}/{place.name}", stretch.change)
    return Resume(path, stretch.change)


def _numbers(rewind: Line, name: str) -> list[int]:
    found = rewind.get(name)
    return [int(one) for one in found] if isinstance(found, list) else []


def _has_logical_ranks(start: Line) -> bool:
    """Return whether a run has the same bits on any number of processes."""
    config = start.get("config")
    parallel = config.get("parallel") if isinstance(config, Mapping) else None
    return isinstance(parallel, Mapping) and parallel.get("logical") is not None


def _copy_of(saved: Saved) -> str:
    return f"replayed_{saved.name}"


def _comparable(
    checkpoint: Mapping[str, object], apart: set[str] | frozenset[str]
) -> Mapping[str, object]:
    """Return the state without that of hooks that only the run or the replay has."""
    hooks = cast("Mapping[str, object]", checkpoint.get("hooks") or {})
    kept = {name: state for name, state in hooks.items() if name not in apart and state}
    store = checkpoint.get("metric_store")
    if isinstance(store, Mapping):
        checkpoint = {
            **checkpoint,
            "metric_store": {name: _without_readers(one, apart) for name, one in store.items()},
        }
    others = {*_OF_OTHERS, *(apart & {"metric_store"} and {"metrics", "metric_store"})}
    rest = {name: value for name, value in checkpoint.items() if name not in others}
    return {**rest, "hooks": kept}


def _without_readers(series: object, readers: set[str] | frozenset[str]) -> object:
    """Return a series without how far some hooks have read it."""
    marks = series.get("marks") if isinstance(series, Mapping) else None
    if not isinstance(series, Mapping) or not isinstance(marks, Mapping):
        return series
    left = {name: mark for name, mark in marks.items() if name not in readers}
    return {**series, "marks": left}


def _hooks_in(checkpoint: Mapping[str, object]) -> Sequence[str]:
    hooks = checkpoint.get("hooks")
    return list(map(str, hooks)) if isinstance(hooks, Mapping) else []


def _key_of(record: Mapping[str, object]) -> tuple[object, ...]:
    return record.get("iter"), record.get("phase"), record.get("span")


def _lines_apart(run: Path, replay: Path, stretch: Stretch) -> Iterator[str]:
    """Yield the lines that only one file has, within a stretch.

    At its ends a line may belong to either side.
    """
    sides = [
        {
            _key_of(one)
            for one in records(file, is_lenient=True)
            if one.get("phase") == "train" and one.get("span") == "iter"
            if isinstance(one.get("iter"), int)
            and stretch.first < cast("int", one["iter"]) < stretch.last
        }
        for file in (run, replay)
    ]
    if not sides[1]:
        return
    for own, other, what in ((0, 1, "should not be there"), (1, 0, "is missing")):
        for key in sorted(sides[own] - sides[other], key=str):
            yield f"the line of iteration {key[0]} in {run.name} {what}"


def _said(differences: Sequence[Difference]) -> str:
    return "; ".join(f"{one.name} {one.first!r} is not {one.second!r}" for one in differences)


def _seconds(value: float | None) -> str:
    if value is None:
        return "?"
    return f"{value:.0f} s" if value >= 10 else f"{value:.2g} s"


@contextmanager
def quiet() -> Iterator[None]:
    """Leave out what a resume says: that it has another config is why it is made."""
    level = _log.level
    _log.setLevel(max(level, logging.ERROR))
    try:
        yield
    finally:
        _log.setLevel(level)
