"""The loop: training, validation and test, with every mount point at its place.

Read from top to bottom it is the table of points.py, carried out. Hooks never run any of this; they
ask through the run's verbs, and the loop obeys here, between iterations. Whoever goes through
`Loop.iterations` makes the updates: `Loop.train` does, and so may a loop of the user's own.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from hookloop.checkpoint.request import Save
from hookloop.core.evaluation import Evaluation, Validation
from hookloop.core.iteration import Iteration, make_compute
from hookloop.core.plan import fire
from hookloop.core.run import Run
from hookloop.core.update import Update
from hookloop.data.randomness import Randomness
from hookloop.data.source import Source
from hookloop.data.transfer import make_transfer
from hookloop.errors import DataError
from hookloop.metrics.meters import Metric


class Saver(Protocol):
    """What the loop asks of whoever makes the checkpoints."""

    def save(self, run: Run, saves: Sequence[Save]) -> None:
        """Take the state of the run and have it written."""

    def report(self, run: Run) -> None:
        """Let hooks know what has become durable."""

    def amend(self, run: Run, metrics: Mapping[str, float]) -> None:
        """Add the results of the validation to the checkpoints of its iteration."""

    def close(self, run: Run) -> None:
        """Wait until everything that can be saved is durable."""


class Loop:
    """Drives one run.

    Args:
        run: The run; its counters and current values are written here and nowhere else.
        updates: The work of an iteration.
        metrics: What evaluations compute besides the loss.
        validation: When to validate.
        accumulate: Microbatches per iteration.
        epoch_iters: Iterations per epoch, if not the data decides.
        autocast: The context of forward and loss, or None for full precision.
        saver: Makes the checkpoints that were asked for.
    """

    def __init__(  # noqa: PLR0913 - what the Trainer prepared
        self,
        run: Run,
        updates: list[Update],
        *,
        metrics: Mapping[str, Metric],
        validation: Validation,
        accumulate: int,
        epoch_iters: int | None,
        autocast: AbstractContextManager[None] | None,
        saver: Saver,
    ) -> None:
        self.run = run
        self.updates = updates
        compute = make_compute(run, autocast)
        self.evaluation = Evaluation(run, updates, metrics, compute)
        self._iteration = Iteration(run, updates, compute)
        self.validation = validation
        self.accumulate = accumulate
        self.epoch_iters = epoch_iters
        self.saver = saver
        self.randomness: Randomness | None = None

    def train(self) -> None:
        """Train until a limit is reached or a stop is asked for."""
        for batches in self.iterations():
            self._iteration.make(batches)

    def iterations(self) -> Generator[list[object], None, None]:
        """Yield the batches of each iteration, for its update; all the rest is done in between."""
        run, plan, progress = self.run, self.run.plan, self.run.progress
        with run.metrics.repeated(is_so=progress.iter > 0):  # Recorded once, as without a resume.
            fire(plan.before_train, run)
        if progress.stage != "inside":
            self._take_up_randomness()
        if self.validation.due_at_start(progress):
            self.validate()
        if progress.stage == "closing":  # The checkpoint was made before this epoch's validation.
            self._end_epoch()
        while not (progress.is_done or run.requests.stop) and (yield from self._train_epoch()):
            self._end_epoch()
        self._keep_randomness()
        if self.validation.due_at_end(progress):
            run.validate()
            self._obey()
        if run.requests.stop:
            fire(plan.on_stop, run, run.requests.stop.reason)
        fire(plan.after_train, run)
        self._obey()

    def _train_epoch(self) -> Generator[list[object], None, bool]:
        """Go through one epoch; return whether its end was reached."""
        run, plan, progress = self.run, self.run.plan, self.run.progress
        if is_new := progress.stage != "inside":
            progress.stage, progress.iter_in_epoch = "inside", 0
            run.metrics.start_epoch("train")
        with run.metrics.repeated(is_so=not is_new):
            fire(plan.before_epoch, run)
            run.model.train()
            fire(plan.before_train_epoch, run)
        self._take_up_randomness()
        self._obey()  # A validation that was due when the run was cut off.
        if run.requests.stop:
            return False
        due, requests, limit = self.validation.due_after_iter, run.requests, progress.max_iters
        iteration = self._iteration
        for batches in self._groups():
            iteration.begin(batches)
            yield batches
            iteration.end()
            if due is not None and due(progress):
                run.validate()
            if requests.any:
                self._obey()
            if requests.stop or progress.iter == limit:
                break
        else:
            progress.epoch_iters = progress.iter_in_epoch
        if progress.iter_in_epoch != progress.epoch_iters:
            return False
        if progress.iter_in_epoch == 0:
            raise DataError(f"{self._source().name} is empty: it gave no batch.")
        if self.epoch_iters is None:  # A limit may be reached on the last batch, before the reader
            self._source().finish()  # has found that there are no more.
        progress.epoch += 1
        progress.stage = "closing"
        run.metrics.moment = (progress.iter, progress.epoch)
        run.metrics.end_epoch()
        fire(plan.after_train_epoch, run)
        return True

    def _end_epoch(self) -> None:
        """Save and validate what is due after an epoch, and close it."""
        run, plan, progress = self.run, self.run.plan, self.run.progress
        if self._source().is_one_pass and not progress.is_done:
            run.stop(f"{self._source().name} ended after {progress.iter} iterations")
        if self.validation.due_after_epoch(progress):
            if not self.validation.is_regular(progress):
                self._keep_randomness()
            run.validate()
        self._obey()
        if run.requests.validate:  # Interrupted: the epoch is closed by the run that resumes.
            return
        progress.stage = "between"
        fire(plan.after_epoch, run)
        fire(plan.after_epoch_profile, run)
        self._obey()

    def _obey(self) -> None:
        """Do what hooks asked for: first save, so that a failing validation loses nothing."""
        run, requests = self.run, self.run.requests
        while requests.any:
            requests.any = False
            self.saver.report(run)
            saves, requests.saves = requests.saves, []
            self.saver.save(run, saves)
            if requests.validate and not run.is_interrupted:
                self.validate()

    def save_requested(self) -> None:
        """Save what was asked for when the loop had failed, and wait for it."""
        saves, self.run.requests.saves = self.run.requests.saves, []
        try:
            self.saver.save(self.run, saves)
        finally:  # What was under way before is not to be lost with it.
            self.saver.close(self.run)

    def validate(self) -> dict[str, float]:
        """Run every validation stream once; one that a signal cuts short is due again."""
        run, before = self.run, Randomness.now()
        metrics = self.evaluation.validate()
        if run.is_interrupted:
            before.restore()
            run.requests.validate = True
        else:
            run.requests.validate = False
            self.validation.note(run.progress)
            self.saver.amend(run, metrics)
        return metrics

    def _keep_randomness(self) -> None:
        """Remember where the random numbers stand, for a training that is continued later."""
        self.randomness = self.randomness or Randomness.now()

    def _take_up_randomness(self) -> None:
        """Continue the random numbers of the run that is resumed, whatever hooks drew meanwhile."""
        if self.randomness is not None:
            self.randomness.restore()
            self.randomness = None

    def _groups(self) -> Iterator[list[object]]:
        """Read an epoch in groups of microbatches, on the device."""
        groups = self._source().epoch(self.accumulate, self._iters_left())
        move = make_transfer(self.run.device)
        return groups if move is None else ([move(one) for one in group] for group in groups)

    def _iters_left(self) -> int | None:
        """Iterations left of an epoch of fixed size; None where the data decides."""
        return (
            None if self.epoch_iters is None else self.epoch_iters - self.run.progress.iter_in_epoch
        )

    def _source(self) -> Source:
        if self.run.train_data is None:
            raise DataError("There is nothing to train on: give train_data=.")
        return self.run.train_data
