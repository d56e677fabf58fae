"""`Writing`: the base of all hooks that write the run's numbers: when they are written, and which.

A subclass says in `open` which writer it is. The rest of the way is the same for every backend:
metric store -> records -> a thread -> writer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal

from hookloop.core.checks import matches
from hookloop.core.hook import Hook, Priority, interval_of, limit
from hookloop.core.plan import Disabled
from hookloop.errors import HookError
from hookloop.every import Every
from hookloop.metrics.store import EPOCH, stream_of
from hookloop.writers.background import Background
from hookloop.writers.base import Report, Writer, warn_of_failure
from hookloop.writers.records import Config, Record, Scalars

if TYPE_CHECKING:
    from hookloop.core.run import Phase, Run

Span = Literal["iter", "epoch"]


class Writing(Hook):
    """Send the run's numbers, and whatever hooks emit, to a writer.

    Whatever is put into the metric store is written once, at the next write, with the iteration in
    which it was put: a mean of what came since the last time, of 100 values at most. Numbers of
    iterations are written at the interval, all others also after each epoch, validation and test,
    and what is left when the run ends. Between these nothing is read from the device. Writing takes
    place in a thread. A writer that fails is reported once and switched off; the run continues.

    Args:
        every: How often to write in training, in iterations or time.
        metrics: Names or patterns of the numbers to write; all when not given.
    """

    priority = Priority.BELOW_NORMAL
    on_error = "disable"

    def __init__(self, every: Every | int | str = 50, metrics: Sequence[str] | None = None) -> None:
        if isinstance(metrics, str):
            raise HookError(
                f"{type(self).__name__}: metrics is a list, write metrics=['{metrics}']."
            )
        self.every = interval_of(self, every)
        self._wanted = tuple(metrics or ())
        # Learning rates are added when a record is made: nothing produces them before.
        self.reads = tuple(name for name in self._wanted if not is_rate(name))
        self._writer: Background | None = None
        self._leaves_open = False  # Whether the writer is the user's to close.
        self._write_more: Callable[[Run, str], None] | None = None  # What a subclass adds, if any.
        self._phase: Phase = "train"  # The phase that the run was started for.
        self._rates_at = -1

    def open(self, run: Run) -> Writer:
        """Make the writer; called when the run is restored, on the main process only."""
        raise NotImplementedError

    def before_train(self, run: Run) -> None:
        self._open(run, "train")

    def before_val(self, run: Run) -> None:
        self._open(run, "val")

    def before_test(self, run: Run) -> None:
        self._open(run, "test")

    def after_train_iter(self, run: Run) -> None:
        self._write(run, "iter")
        if self._write_more is not None:
            self._write_more(run, "iters")

    @limit("1 epoch")  # An interval in seconds is not meant for these.
    def after_train_epoch(self, run: Run) -> None:
        self._write_epoch(run)
        if self._write_more is not None:
            self._write_more(run, "epochs")

    def after_val_epoch(self, run: Run, metrics: Mapping[str, float]) -> None:
        self._write_evaluation(run)

    def after_val(self, run: Run) -> None:
        self._write_evaluation(run)

    @limit("1 epoch")
    def after_epoch_profile(self, run: Run) -> None:
        self._write_epoch(run)

    def after_test_epoch(self, run: Run, metrics: Mapping[str, float]) -> None:
        self._write_evaluation(run)

    def after_test(self, run: Run) -> None:
        self._write_evaluation(run)

    def after_run(self, run: Run) -> None:
        # Hooks that act later may still put something: the writer is closed after them.
        self._write_rest(run)
        if self._writer is not None:
            if run.is_interrupted:  # The sender of the signal will not wait long.
                self._writer.hurry()
            self._writer.flush()

    def _open(self, run: Run, phase: Phase) -> None:
        if self._writer is not None or not run.world.is_main:
            return
        self.check_setup()
        try:
            writer = self.open(run)
        except OSError as error:
            raise HookError(f"{type(self).__name__} cannot write: {error}") from error
        self._phase = phase
        self._writer = Background(writer, report=self._reporter(run))
        if run.config:
            self._writer.write([Config(run.config)])
        run.outbox.open(self._writer, partial(self._end, run))

    def _end(self, run: Run) -> None:
        """Write what is left when the last hook has acted, and close the writer."""
        if self._writer is None:
            return
        self._write_rest(run)
        run.outbox.close(self._writer)
        if self._leaves_open:
            self._writer.flush()
            self._writer.stop()
        else:
            self._writer.close()
        self._writer = None

    def _write_rest(self, run: Run) -> None:
        # A validation that was cut short is made again by the run that resumes.
        is_cut_short = run.requests.validate and self._phase == "train"
        self._write(run, "iter", (lambda name: stream_of(name) == "val") if is_cut_short else None)

    def _write_epoch(self, run: Run) -> None:
        """Write what belongs to an epoch; the numbers of iterations wait for their interval."""
        self._write(run, "epoch", run.metrics.has_epoch_mean)

    def _write_evaluation(self, run: Run) -> None:
        if not run.is_interrupted:
            self._write(run, "epoch", lambda name: stream_of(name) == "train")

    def _write(self, run: Run, span: Span, skip: Callable[[str], bool] | None = None) -> None:
        """Write what was put since the last time, each number with its own iteration."""
        if self._writer is None:
            return
        now = (run.progress.iter, run.progress.epoch)
        records: list[Record] = []
        for moment, values in run.metrics.news(self.name, now, skip).items():
            groups: dict[tuple[str, str], dict[str, float]] = {}
            for name, value in values.items():
                groups.setdefault(self._kind(run, name, span), {})[name] = value
            for (phase, of), group in groups.items():
                # Learning rates belong to the newest numbers of an iteration, once.
                is_newest = moment == now and self._rates_at != now[0]
                if (phase, of) == ("train", "iter") and is_newest:
                    self._rates_at = now[0]
                    group.update(learning_rates(run) | group)
                if chosen := self._choose(group):
                    records.append(Scalars(chosen, *moment, phase, of))
        self._hand_over(records)

    def _hand_over(self, records: Sequence[Record]) -> None:
        assert self._writer is not None
        self._writer.write(records)

    def _kind(self, run: Run, name: str, span: Span) -> tuple[str, str]:
        """Return in which phase a number was measured, and what it is a mean over."""
        stream = stream_of(name)
        if stream in ("val", "test"):
            return stream, "epoch"
        if stream:
            return "train", "epoch" if stream == EPOCH else span
        return run.phase if self._phase == "train" else self._phase, span

    def _reporter(self, run: Run) -> Report:
        """Return what reports a writer that failed, in whichever thread."""

        def report(writer: Writer, error: BaseException) -> None:
            warn_of_failure(writer, error)
            reason = f"{type(error).__name__}: {error}"
            run.plan.disabled.append(Disabled(self.name, f"writing ({writer.name})", reason))

        return report

    def _choose(self, values: Mapping[str, float]) -> dict[str, float]:
        if not self._wanted:
            return dict(values)
        return {
            name: value
            for name, value in values.items()
            if any(matches(name, wanted) for wanted in self._wanted)
        }


def learning_rates(run: Run) -> dict[str, float]:
    """Return ``lr`` of the first parameter group; ``lr/<optimizer>`` when there are several.

    A name that a hook puts itself is left to that hook.
    """
    several = len(run.optimizers) > 1
    return {
        label: float(optimizer.param_groups[0]["lr"])
        for name, optimizer in run.optimizers.items()
        if (label := f"lr/{name}" if several else "lr") not in run.metrics
    }


def is_rate(name: str) -> bool:
    """Return whether a name is that of a learning rate."""
    return name == "lr" or name.startswith("lr/")
