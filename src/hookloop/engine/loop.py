"""The loop: training, validation and test, with every mount point in its place.

Read from top to bottom it is the table of points.py, carried out; the points within an update are
in update.py. Hooks never run any of this: they make requests through the run, and the loop handles
these between iterations. Whoever iterates over `Loop.iterations` makes the updates: `Loop.train`
does, and so may a loop of the user's own.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from hookloop.checkpoint.saving.checkpoints import Checkpoints
from hookloop.checkpoint.state.modules import keep_buffers, keep_modes, modules_of
from hookloop.checkpoint.store.index import Saved
from hookloop.data.group_sizes import GroupSizes
from hookloop.data.mixing.mixture import Mixture, TrainingStream
from hookloop.data.position.skipped import has_skipped_data, skip_iterations
from hookloop.data.random.paused import PausedRandomness
from hookloop.data.reading.current import nothing_read
from hookloop.data.transfer import make_transfer
from hookloop.engine.evaluation import Computes, Evaluation
from hookloop.engine.influence import changed_since, settings_now
from hookloop.engine.plan import fire
from hookloop.engine.progress import Progress
from hookloop.engine.run import Run
from hookloop.engine.sync_points import SyncPoints
from hookloop.errors import DataError, HookError
from hookloop.every import Every, Unit, count_of
from hookloop.metrics.meters import Metric
from hookloop.metrics.results import Results
from hookloop.requests import Rewind, Wanted, both, without

Make = Callable[[Run, list[object]], None]
"""Makes an update of an iteration from its microbatches."""


@dataclass(frozen=True, slots=True)
class Assembly:
    """What a training is made of besides the loop; nothing else is given to the loop later.

    Attributes:
        first: They make the updates of the first iteration, one after the other.
        makes: They make those of all others.
        count: Counts samples or tokens; None if nobody asks for them.
        go_back: Restores the checkpoint of a `Rewind`.
    """

    first: Sequence[Make] = ()
    makes: Sequence[Make] = ()
    count: Callable[[Run, list[object]], None] | None = None
    go_back: Callable[[Rewind], Rewind] | None = None


class Validation(Protocol):
    """What the loop asks of the part that knows when to validate."""

    every: Every
    begin: int
    enabled: bool
    due: tuple[str, ...]

    @property
    def units(self) -> set[Unit]:
        """The units that have to be counted for it."""

    def due_at_start(self, progress: Progress) -> bool:
        """Return whether to validate before the first iteration."""

    @property
    def due_after_iter(self) -> Callable[[Progress], bool] | None:
        """What returns whether to validate after an iteration; None if that never happens."""

    def due_after_epoch(self, progress: Progress) -> bool:
        """Return whether to validate after the epoch that was just completed."""

    def due_at_end(self, progress: Progress) -> bool:
        """Return whether a run at its limit still lacks the validation of its last state."""

    def is_regular(self, progress: Progress) -> bool:
        """Return whether the interval asks for a validation after this epoch, last or not."""

    def request(self, run: Run) -> None:
        """Request the validation whose time has come, of the streams that are ``due``."""

    def note(self, progress: Progress, wanted: Wanted, *, is_planned: bool) -> None:
        """Record that a validation took place now, and whether a plan asked for it."""


class Loop:
    """Drives one run.

    Args:
        run: The run; its counters and current values are written here and nowhere else.
        updates: The updates of an iteration; evaluations compute with them.
        metrics: What evaluations compute besides the loss.
        validation: When to validate.
        sizes: Microbatches per iteration.
        epoch_iters: Iterations per epoch, if the data does not decide.
        checkpoints: Makes the checkpoints that were requested.

    Attributes:
        randomness: Where the training's random numbers stand while it pauses.
    """

    def __init__(
        self,
        run: Run,
        updates: Sequence[Computes],
        *,
        metrics: Mapping[str, Metric],
        validation: Validation,
        sizes: GroupSizes,
        epoch_iters: int | None,
        checkpoints: Checkpoints,
    ) -> None:
        self.run = run
        self.sync_points = SyncPoints(run)
        self.evaluation = Evaluation(run, updates, metrics)
        self.validation = validation
        self.own = run._internals
        self.own.val_every = validation.every if validation.enabled else None
        self.sizes = sizes
        run.accumulate = sizes.first
        self.epoch_iters = epoch_iters
        self.checkpoints = checkpoints
        self.randomness = PausedRandomness(run)
        self._go_back: Callable[[Rewind], Rewind] | None = None  # While a training is under way.

    def train(self, assembly: Assembly) -> None:
        """Train until a limit is reached or a stop is requested."""
        run, makes = self.run, assembly.first
        for batches in self.iterations(assembly):
            for make in makes:
                make(run, batches)
            makes = assembly.makes

    def iterations(self, assembly: Assembly) -> Generator[list[object], None, None]:
        """Yield the batches of each iteration for its update; do everything else in between."""
        self._go_back = assembly.go_back
        run, plan, progress = self.run, self.run._plan, self.run.progress
        is_continued = self.randomness.resume()
        self.sync_points.begin(progress.iter)
        with self.randomness.repeating(is_continued):
            fire(plan.before_train, run)
        self.own.undeclared.settle()
        if self.validation.due_at_start(progress):
            self.validate(planned=True)
        if progress.stage == "closing":  # The checkpoint was made before this epoch's validation.
            self._end_epoch()
        while self._has_more():
            if (yield from self._train_epoch(assembly.count)):
                self._end_epoch()
        self._go_back = None
        kept = self.randomness.pause()
        if self.validation.due_at_end(progress):
            run.validate(*self.validation.due, everywhere=True)
            self._handle_requests()
        # A checkpoint of the end has them, for a run that is made longer.
        self.randomness.restore(kept)
        if self.own.requests.stop:
            fire(plan.on_stop, run, self.own.requests.stop.reason)
        fire(plan.after_train, run)
        self._handle_requests()

    def _has_more(self) -> bool:
        """Return whether there is more to train; go back first, if that was requested."""
        run = self.run
        while self.own.requests.rewind and self._go_back:
            rewind = self._go_back(self.own.requests.rewind)
            self.own.requests.rewind = None
            self.randomness.resume()
            fire(self.run._plan.after_rewind, run, rewind)
            if run.progress.stage == "closing":
                self._end_epoch()
        return not (run.progress.is_done or self.own.requests.stop)

    def _train_epoch(
        self, count: Callable[[Run, list[object]], None] | None
    ) -> Generator[list[object], None, bool]:
        """Train one epoch; return whether its end was reached."""
        run, plan, progress = self.run, self.run._plan, self.run.progress
        if is_new := progress.stage != "inside":
            progress.stage, progress.iter_in_epoch = "inside", 0
            run.metrics.start_epoch("train")
        with self.randomness.repeating(not is_new):
            fire(plan.before_epoch, run)
            run.model.train()  # A hook may have left it in evaluation mode.
            fire(plan.before_train_epoch, run)
            self.own.undeclared.begin_epoch()
        # A validation may have been due when the run was cut off.
        if self._handle_requests() or self.own.requests.stop:
            return False
        due, requests = self.validation.due_after_iter, self.own.requests
        sync_points = self.sync_points
        last = progress.epoch_iters if is_new and self.sizes.is_constant else self._last_iter()
        if not self.sizes.is_constant:  # Each epoch may have another length.
            progress.epoch_iters = last
        for batches in self._groups():
            self._begin_iteration(batches)
            yield batches
            if count is not None:
                count(run, batches)
            self._end_iteration()
            if due is not None and due(progress):
                self.validation.request(run)
            if (requests.any or progress.iter >= sync_points.next) and self._handle_requests():
                return False
            if requests.stop or progress.iter == progress.max_iters:
                if progress.iter_in_epoch != last:
                    return False
                break
        else:
            # An epoch in which the batch size changed says nothing about the length of the next.
            is_whole = (is_new or last is None) and not has_skipped_data(progress)
            progress.epoch_iters = progress.iter_in_epoch if is_whole else progress.epoch_iters
        self._complete_pass()
        fire(plan.after_train_epoch, run)
        return True

    def _complete_pass(self) -> None:
        """Count the epoch whose training is done."""
        run, progress, stream = self.run, self.run.progress, self._stream()
        if progress.iter_in_epoch == 0:  # Otherwise the loop would go round forever.
            raise nothing_read(stream.data, stream.name, stream.passes)
        if self.epoch_iters is None:  # A limit may be reached on the last batch, before the reader
            stream.finish()  # has found that there are no more.
        progress.epoch += 1
        progress.stage = "closing"
        run.metrics.stamp = (progress.iter, progress.epoch)
        run.metrics.end_epoch()

    def _begin_iteration(self, batches: list[object]) -> None:
        run, progress = self.run, self.run.progress
        run.metrics.stamp = (progress.iter + 1, progress.epoch)
        run.batch = batches[0]
        if calls := self.run._plan.before_train_iter:
            fire(calls, run)
            if run.batch is not batches[0]:
                replace_batch(batches, run.batch)

    def _end_iteration(self) -> None:
        run, progress = self.run, self.run.progress
        progress.iter += 1  # Before the hooks: they see counters of completed things.
        progress.iter_in_epoch += 1
        if calls := self.run._plan.after_train_iter:
            fire(calls, run)

    def _end_epoch(self) -> None:
        """Save and validate what is due after an epoch, and close it."""
        run, plan, progress = self.run, self.run._plan, self.run.progress
        if self._stream().is_one_pass and not progress.is_done:
            name = self._stream().name
            run.stop(f"{name} ended after {count_of(progress.iter, 'iteration')}", everywhere=True)
        if self.validation.due_after_epoch(progress):
            if not (is_regular := self.validation.is_regular(progress)):
                self.randomness.pause()
            run.validate(*self.validation.due, everywhere=True, planned=is_regular)
        # Interrupted: the epoch is closed by the run that resumes, or after going back.
        if self._handle_requests() or self.own.requests.validate:
            return
        progress.stage = "between"
        fire(plan.after_epoch, run)
        fire(plan.after_epoch_profile, run)
        self._handle_requests()

    def _handle_requests(self) -> bool:
        """Do what hooks requested: save first, so that a failing validation loses nothing.

        Returns whether the run is to go back instead, which leaves the epoch.
        """
        run, requests = self.run, self.own.requests
        # Hooks at the points below may make further requests.
        while self._agree():
            requests.any = False  # First: a thread that has finished a save sets it at any time.
            if self._go_back is None:
                requests.rewind = None  # The training is over.
            elif requests.rewind:
                return True
            self._tell_saved()
            while requests.calls:
                requests.calls.popleft()(run)
            saves, requests.saves = requests.saves, []
            self.checkpoints.take(saves)
            if requests.validate and not run.is_interrupted:
                self.validate(requests.validate, planned=requests.planned)
        return False

    def _agree(self) -> bool:
        """Return whether anything was requested; many ranks meet to find out."""
        run, requests = self.run, self.own.requests if self.run.world.is_alone else self.own.wishes
        if not run.world.is_alone and (finished := self.checkpoints.finished()):
            self.own.wishes.news += finished  # For the other ranks too.
            self.own.wishes.any = True
        while self.own.asked:  # A thread may add to it at any time.
            requests.calls.append(self.own.asked.popleft())
            requests.any = True
        return self.sync_points.hold(run.progress.iter)

    def save_requested(self) -> None:
        """Save what was requested when the loop failed, and wait for it."""
        saves, self.own.requests.saves = self.own.requests.saves, []
        try:
            self.checkpoints.take(saves)
        finally:  # Earlier saves that are still being written must not be lost with this one.
            self.close_checkpoints()

    def close_checkpoints(self) -> None:
        """Wait until everything that can be saved is durable, and tell hooks."""
        self._fire_saved(self.checkpoints.close())

    def _tell_saved(self) -> None:
        """Tell hooks what has become durable, with the metrics of its own iteration."""
        run = self.run
        news, self.own.requests.news = self.own.requests.news, []
        if run.world.is_alone:
            news = self.checkpoints.finished()
        # The validation of this iteration comes next; its checkpoints are told of after it.
        is_due = bool(self.own.requests.validate) and not run.is_interrupted
        self._fire_saved(self.checkpoints.to_announce(news, is_validation_due=is_due))

    def _fire_saved(self, news: Sequence[Saved]) -> None:
        for saved in news:
            fire(self.run._plan.after_save_checkpoint, self.run, saved)

    def validate(self, wanted: Wanted = True, *, planned: Wanted = False) -> Results:
        """Run validation streams once; a validation that a signal cuts short is due again.

        Args:
            wanted: Which streams.
            planned: Which of them a plan of iterations or epochs asks for. These draw from the
                random numbers of the training, and come first; the others leave no trace.
        """
        names = self.run.val_data
        others = without(wanted, planned, names) if planned else wanted
        results = self._validate_planned(without(wanted, others, names)) if planned else None
        if others and not self.run.is_interrupted:
            return self._validate_aside(others)
        if others:
            self.own.requests.validate = both(self.own.requests.validate, others)
        assert results is not None  # Something was wanted.
        return results

    def _validate_planned(self, wanted: Wanted) -> Results:
        before = self.randomness.now()
        results = self.evaluation.validate(wanted)
        if self.run.is_interrupted:
            self.randomness.restore(
                before
            )  # The run that resumes makes the whole validation again.
        self._conclude_validation(wanted, results, is_planned=True)
        return results

    def _validate_aside(self, wanted: Wanted) -> Results:
        """Validate without a trace in the training: whether it is asked for changes no result.

        What hooks do with the results stays, such as a learning rate that falls, and is recorded.
        """
        run, settings = self.run, settings_now(self.run)
        modules = modules_of(run.model, self.own.loss_function)
        # Outside of a training, what a forward leaves in the model is there to be looked at.
        others = self.own.undeclared.keep_from_evaluation(removes_new=self.own.purpose == "train")
        kept = [keep_buffers(modules), keep_modes(modules), others]
        current = {name: getattr(run, name) for name in ("batch", "output", "loss", "place")}
        with self.randomness.without_trace(run.val_data.values()):
            results = self.evaluation.validate(wanted)
        for put_back in kept:
            put_back()
        for name, value in current.items():
            setattr(run, name, value)
        self._conclude_validation(wanted, results, is_planned=False)
        if not run.is_interrupted:
            streams = sorted(wanted) if isinstance(wanted, frozenset) else [*run.val_data]
            named = {"streams": [name or "val" for name in streams]}
            changed = changed_since(settings, run)
            self.own.interventions.add("validation", run.progress.iter, **named, changed=changed)
        return results

    def _conclude_validation(self, wanted: Wanted, results: Results, *, is_planned: bool) -> None:
        run = self.run
        if run.is_interrupted:
            self.own.requests.validate, self.own.requests.planned = (
                wanted,
                wanted if is_planned else False,
            )
        else:
            self.own.requests.validate = self.own.requests.planned = False
            self.validation.note(run.progress, wanted, is_planned=is_planned)
            if self.checkpoints.add_results(results):
                self.own.requests.any = True

    def _groups(self) -> Iterator[list[object]]:
        """Read an epoch in groups of microbatches, on the device."""
        stream, move = self._stream(), make_transfer(self.run.device)
        fixed, done = self.epoch_iters, self.run.progress.iter_in_epoch
        left = None if fixed is None else fixed - done  # None where the data decides.
        groups = stream.epoch(self.sizes.to_read(self.run), left)
        if move is not None:
            groups = ([move(batch) for batch in group] for group in groups)
        if isinstance(stream, Mixture):
            groups = stream.label(groups, partial(setattr, self.run, "stream"))
        return skip_iterations(groups, self.run.progress)

    def _last_iter(self) -> int | None:
        """Return the last iteration of an epoch that is continued, or None if it is unknown.

        A resume may have changed how many samples make an iteration.
        """
        progress, left = self.run.progress, self._stream().batches_left
        if self.epoch_iters is not None or left is None:
            return self.epoch_iters or (progress.epoch_iters if self.sizes.is_constant else None)
        return progress.iter_in_epoch + self.sizes.iters(left, progress.iter, progress.epoch)

    def _stream(self) -> TrainingStream:
        if self.run.train_data is None:
            raise DataError("There is nothing to train on: give train_data=.")
        return self.run.train_data


def replace_batch(batches: list[object], batch: object) -> None:
    """Train on another batch than the one that was read; reject this for several microbatches."""
    if len(batches) > 1:
        raise HookError(
            "A hook replaced run.batch at before_train_iter, which fires once for "
            f"{len(batches)} microbatches: replace each at before_forward."
        )
    batches[0] = batch
