"""The life of a run: open its directory, load, run, save, close, and report how it ended.

before_run -> load -> the work -> the last checkpoint -> after_run, whatever happened in between
"""

from __future__ import annotations

import logging
import os
import traceback
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from signal import SIGINT
from typing import TYPE_CHECKING, cast

from hookloop.checkpoint.state.gradients import marking_used_gradients
from hookloop.data.random.states import seed_all
from hookloop.data.reading.none_samples import note_none_in_traceback
from hookloop.data.reading.workers import check_main_is_guarded
from hookloop.engine.loop import Loop
from hookloop.engine.plan import fire
from hookloop.engine.run import Run
from hookloop.hooks.ending.stop_on_signal import restore_signal_handlers
from hookloop.hooks.writing.write_metrics import record_disabled
from hookloop.outcome import Interrupted, Outcome, Status
from hookloop.parallel.failure import PeerFailed
from hookloop.parallel.settings import Parallel
from hookloop.requests import Requests
from hookloop.runs.config_values import is_whole
from hookloop.runs.identity import Identity
from hookloop.runs.layout import RunDir
from hookloop.runs.run_log import RunLog
from hookloop.secret import redact
from hookloop.trainer.arithmetic import Arithmetic
from hookloop.trainer.ending import (
    break_off,
    breaking_off,
    do_at_end,
    explaining,
    fire_after_run,
    wait_for_readers,
)
from hookloop.trainer.inputs import note_streams
from hookloop.trainer.other_weights import OtherWeights, best_of, load_best
from hookloop.trainer.recording import record_end, record_start
from hookloop.trainer.rewinding import Rewinder
from hookloop.trainer.several_ranks import (
    agree_on_order,
    align_ranks,
    find_checkpoint,
    join_orders,
)
from hookloop.trainer.start import Start
from hookloop.trainer.state.run_state import RunState
from hookloop.trainer.trained_with import describe_training

if TYPE_CHECKING:
    from hookloop.data.stream import Stream

_log = logging.getLogger("hookloop")


class Session:
    """The life of a run: each call of train, validate or the like, from before_run to after_run.

    Args:
        run: The run.
        loop: Does the work.
        start: Where the run begins: its directory, and what is loaded.
        state: What the run consists of.
        parallel: How several ranks work together.
        arithmetic: How torch computes while the run works.
    """

    def __init__(
        self,
        run: Run,
        loop: Loop,
        start: Start,
        state: RunState,
        parallel: Parallel | None = None,
        arithmetic: Arithmetic | None = None,
    ) -> None:
        self.parallel = parallel or Parallel()
        self._arithmetic = arithmetic or Arithmetic()
        self.run = run
        self.start = start
        self._loop = loop
        self._state = state
        self._replaced: OtherWeights | None = None

    @contextmanager
    def training(self, *, own_updates: bool = False) -> Iterator[Rewinder]:
        """Train; yields what goes back to an earlier checkpoint.

        Args:
            own_updates: Whether the user makes the updates, so that gradients may be kept from one
                iteration to the next.
        """
        run = self.run
        self._state.gradients.is_kept = own_updates
        if self._replaced is not None:  # A training continues where it ended, not from the best.
            self._replaced.put_back()
            self._replaced = None
        is_resuming = self.start.is_resuming
        watching = marking_used_gradients(run.optimizers) if own_updates else nullcontext()
        with watching, self.running(trains=True):
            is_described = self.start.is_open and not is_whole(run.config)
            described = describe_training(run) if is_described else None
            self.start.keep_config(run.config, described if run.hooks else None)
            if self.start.is_open:
                loaded = self.start.loaded if is_resuming else None
                record_start(run, loaded=loaded, described=described, change=self.start.change)
            # A training that is continued gets its random numbers from the checkpoint or from the
            # last call.
            if run._internals.seed is not None and run.progress.iter == 0:
                seed_all(run._internals.seed)
            agree_on_order(
                run, is_new=run.progress.iter == 0 and self._loop.randomness.paused_at is None
            )
            if run.world.is_main and run._internals.id is not None:
                is_new = run.progress.iter == 0 or run._internals.is_from_other
                self._loop.checkpoints.claim(run._internals.id, run.stores, is_new=is_new)
            yield Rewinder(self._loop, self._state, self.restore)

    def restore(
        self,
        label: str,
        checkpoint: dict[str, object],
        change: Sequence[str] | None = None,
        *,
        trains: bool = True,
    ) -> None:
        """Restore a checkpoint.

        Args:
            label: Where it is from.
            checkpoint: Its entries.
            change: What differs on purpose; None if it is of this very run, and nothing differs.
            trains: Whether a training continues from it.
        """
        run = self.run
        # Before anything is restored, so that hooks can still change the entries.
        fire(run._plan.after_load_checkpoint, run, checkpoint)
        # The loop sets the generators itself when it starts. What is drawn until then does not
        # count.
        self._loop.randomness.paused_at = self._state.restore(
            checkpoint, label, change, trains=trains
        )
        join_orders(run)
        if trains:
            self._loop.checkpoints.continue_from(label, run.stores)

    def is_over(self) -> bool:
        """Return whether the run to continue has completed already; it is loaded, not trained."""
        run = self.run
        run._internals.ranks.open(run.device)
        summary = run._internals.ranks.share(self.start.ended(run.progress))
        if summary is None:
            return False
        # An empty session loads the checkpoint, so that the script finds the trained weights in the
        # model.
        with self.running():
            self._replaced = load_best(run)
        metrics = cast("dict[str, float]", summary.get("metrics") or {})
        run.outcome = replace(run.outcome, metrics={**run.outcome.metrics, **metrics})
        _log.warning(
            "'%s' has completed before: there is nothing left to train. A larger max_epochs or "
            "max_iters continues it.",
            run.dir,
        )
        return True

    @contextmanager
    def running(self, *, trains: bool = False) -> Iterator[None]:
        """Do some work between before_run and after_run; whatever it reports is logged.

        Raises:
            Interrupted: At the end, if a signal cut the work short.
        """
        check_main_is_guarded()
        with closing(RunLog()) as log, self._working(log, trains=trains):
            yield
        # Only now, when everything is closed: the exception usually ends the process.
        if self.run.outcome.status == "interrupted":
            raise Interrupted(self.run.outcome)

    @contextmanager
    def _working(self, log: RunLog, *, trains: bool) -> Iterator[None]:
        run, process = self.run, os.getpid()
        # A validation that a signal cut short stays due in the next call. A request to stop does
        # not.
        due, planned = run._internals.requests.validate, run._internals.requests.planned
        run._internals.requests = Requests(validate=due, planned=planned, any=bool(due))
        run._internals.wishes = Requests()
        run.outcome = Outcome("running")
        with breaking_off(run):
            run._internals.ranks.open(run.device)
            if run.hooks or self.start.is_given:  # A run without hooks leaves nothing on disk.
                self._open(log, trains=trains)
        failure: BaseException | None = None
        protect_randomness(run)
        try:
            with explaining(run), self._arithmetic.applied():
                self._prepare(trains=trains)
                yield
                self._loop.close_checkpoints()
                if trains:
                    self._load_best(log)
            run.outcome = self._outcome()
        except BaseException as error:
            if os.getpid() != process:  # A child that a hook forked: the run is the parent's.
                raise
            failure = error
            self._fail(error, log)
            raise
        finally:
            if os.getpid() == process:
                # Each of these happens, even if another one fails; in the reverse order.
                with ExitStack() as last:
                    # The lock last: another process may start to train here as soon as it is
                    # released.
                    last.callback(self.start.leave)
                    last.callback(wait_for_readers, run)
                    # After the writers are closed. A second signal, such as the SIGTERM that
                    # follows a warning, would otherwise kill the process while trackers are being
                    # closed.
                    last.callback(restore_signal_handlers, run)
                    last.callback(self._close_data)
                    # After the writers too: a hook that fails as it closes belongs in the report.
                    last.callback(self._conclude, log, trains=trains)
                    last.callback(self._close_writers)
                    do_at_end(failure, fire_after_run, run)

    def _fail(self, error: BaseException, log: RunLog) -> None:
        """Do what a failure asks for: tell the other ranks, note it, let hooks act, save."""
        run = self.run
        note_none_in_traceback(error)
        if run.phase != "train" and isinstance(error, Exception):
            stream = "" if run.stream == run.phase else f"['{run.stream}']"
            number = self._loop.evaluation.batch_number
            note_streams(error, run)
            error.add_note(f"while evaluating {run.phase}_data{stream}, batch {number}")
        break_off(run, error)
        run.outcome = self._outcome(error)
        if isinstance(error, Exception):
            log.note("".join(traceback.format_exception(error)).rstrip())
        if isinstance(error, PeerFailed):
            log.note(f"{error}\n{error.traceback}".rstrip())
        # First the hooks, because they may request a checkpoint of the failed run, then the
        # saving.
        do_at_end(error, fire, run._plan.on_exception, run, error)
        do_at_end(error, self._loop.save_requested)
        # Again, since that last checkpoint may have failed too.
        run.outcome = replace(run.outcome, problem=self._loop.checkpoints.problem)

    def _load_best(self, log: RunLog) -> None:
        """Put the best weights into the model, where a hook wants that; after the last save."""
        self._replaced = load_best(self.run)
        if self._replaced is not None:
            log.note(f"the model has the best weights now: {self._replaced.label}")

    def _prepare(self, *, trains: bool) -> None:
        """Do what comes before the work: the same weights on all ranks, or those of a run."""
        run = self.run
        run._internals.undeclared.begin()
        run._internals.undeclared.move()
        align_ranks(run, self.parallel)
        fire(run._plan.before_run, run)
        self._load(trains=trains)
        if not trains:
            agree_on_order(run, is_new=False)

    def _load(self, *, trains: bool) -> None:
        """Load the weights to start from, or the run to continue, if there are any."""
        run, start = self.run, self.start
        if start.weights is not None:
            start.weights.load_into(run.model)
            # Once: a second train() continues with the trained weights.
            start.weights = None
        stores = run.stores
        found = find_checkpoint(run, start, stores)
        is_main = run.world.is_main
        identity = start.identify(found, stores, trains=trains) if is_main else Identity()
        identity, is_from_other, start.change = run._internals.ranks.share(
            (identity, start.is_from_other, start.change)
        )
        run._internals.id, run._internals.parent, run._internals.is_from_other = (
            identity.run_id,
            identity.parent,
            is_from_other,
        )
        if found is not None:
            self.restore(*found, start.change, trains=trains)
            start.loaded = found[0]
            if not trains:  # What the checkpoint had not written yet is the training's to write.
                run.metrics.mark_all_read()

    def _open(self, log: RunLog, *, trains: bool) -> None:
        """Open the run's directory, and the log in it; the first rank does it for all."""
        run, ranks = self.run, self.run._internals.ranks
        if run.world.is_main:
            run.dir = self.start.open(run.config, trains=trains)
        run.dir, identity = ranks.share((run.dir, self.start.identity))
        run._internals.id, run._internals.parent = identity.run_id, identity.parent
        if not run.world.is_main:
            self.start.join(run.dir)
        try:
            log.keep(RunDir(run.dir).log_file_of(run.world.rank))
        # The caller's cleanup is not set up yet at this point, so the lock would stay.
        except BaseException:
            self.start.leave()
            raise

    def _close_writers(self) -> None:
        """Write what hooks put until the last moment, and add it to the outcome."""
        run = self.run
        run._internals.outbox.finish()
        run.outcome = replace(run.outcome, metrics=run.metrics.all_latest())

    def _conclude(self, log: RunLog, *, trains: bool) -> None:
        """Report how the run ended, and which hooks it ended without: some fail at the end."""
        run = self.run
        run.outcome = outcome = replace(run.outcome, disabled=tuple(run._plan.disabled))
        if outcome.disabled and run.world.is_main:
            record_disabled(run, trains=trains)
        if trains:
            record_end(run)
        log.note(f"{outcome} after iteration {run.progress.iter}")

    def _close_data(self) -> None:
        """End the processes that load data: none outlives the run, even if it is referenced."""
        for source in _sources(self.run):
            source.close()

    def _outcome(self, error: BaseException | None = None) -> Outcome:
        run = self.run
        stop = run._internals.requests.stop
        if isinstance(error, KeyboardInterrupt):
            ending = Outcome("interrupted", "KeyboardInterrupt", SIGINT)
        elif isinstance(error, PeerFailed):
            ending = Outcome("failed", redact(str(error).partition("\n")[0]))
        elif isinstance(error, SystemExit) and not error.code:
            ending = Outcome("stopped", "sys.exit() was called")
        elif error is not None:
            # Exceptions of foreign code quote URLs and arguments, in which secrets of the config
            # may be.
            ending = Outcome("failed", redact(f"{type(error).__name__}: {error}"))
        elif stop is None:
            ending = Outcome("completed")
        else:
            status: Status = "stopped" if stop.signal is None else "interrupted"
            ending = Outcome(status, stop.reason, stop.signal)
        problem, best = self._loop.checkpoints.problem, best_of(run)
        return replace(
            ending,
            best=best[0] if best else None,
            all_best=best,
            metrics=run.metrics.all_latest(),
            run_dir=run.dir,
            problem=problem,
            disabled=tuple(run._plan.disabled),
        )


def _sources(run: Run) -> list[Stream]:
    train = run.train_data.parts() if run.train_data is not None else ()
    streams = (run.val_data, run._internals.test_data, run._internals.predict_data)
    return [*train, *(source for sources in streams for source in sources.values())]


def protect_randomness(run: Run) -> None:
    """Name the generators that hooks must leave alone if they only observe."""
    own = run._internals.observer_randomness
    own.forget_moments()
    own.watch_devices({run.device, *(one.device for one in run.model.parameters())})
    _protect_loaders(run)
    if own.key is None:
        # A checkpoint may bring another key later, with which the observers repeat their numbers.
        own.key = run._internals.seed


def _protect_loaders(run: Run) -> None:
    sources = _sources(run)
    run._internals.observer_randomness.watch_loaders(g for one in sources for g in one.generators())
    # A hook may replace a loader, and the new one has generators of its own.
    for source in sources:
        source.when_replaced(partial(_note_replaced, run))


def _note_replaced(run: Run) -> None:
    _protect_loaders(run)
    run._internals.undeclared.note_replaced()
