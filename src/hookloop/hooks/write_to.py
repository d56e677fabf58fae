"""`WriteTo`: when the run's numbers go to a writer. The base of the hooks that name a backend."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal

from hookloop.core.checks import matches
from hookloop.core.hook import Hook, Priority, interval_of, limit
from hookloop.core.plan import Disabled
from hookloop.errors import HookError
from hookloop.every import Every
from hookloop.hooks._rates import is_rate, learning_rates
from hookloop.metrics.store import EPOCH, stream_of
from hookloop.writers.background import Background
from hookloop.writers.base import Report, Writer, warn_of_failure
from hookloop.writers.records import Config, Record, Scalars

if TYPE_CHECKING:
    from hookloop.core.run import Phase, Run

Span = Literal["iter", "epoch"]


class WriteTo(Hook):
    """Send the run's numbers, and whatever hooks emit, to a writer.

    Whatever is put into the metric store is written once, at the next write, with the iteration in
    which it was put: a mean of what came since the last time, of 100 values at most. Numbers of
    iterations are written at the interval, all others also after each epoch, validation and test,
    and what is left when the run ends. Between these nothing is read from the device. Writing takes
    place in a thread. A writer that fails is reported once and switched off; the run continues.

    A subclass says in `open` which writer it is.

    Args:
        writer: A writer, which is flushed when the run ends and stays open; or a function that
            makes one from the run, which is closed then.
        every: How often to write in training, in iterations or time.
        metrics: Names or patterns of the numbers to write; all when not given.

    Example:
        >>> from hookloop.writers.jsonl import JsonLines
        >>> hook = WriteTo(lambda run: JsonLines(run.dir / "losses.jsonl"), metrics=["*/loss"])
        >>> hook.reads
        ('*/loss',)
    """

    priority = Priority.BELOW_NORMAL
    on_error = "disable"

    def __init__(
        self,
        writer: Writer | Callable[[Run], Writer],
        every: Every | int | str = 50,
        metrics: Sequence[str] | None = None,
    ) -> None:
        self._given = writer
        self._set_up(every, metrics)

    def _set_up(self, every: Every | int | str, metrics: Sequence[str] | None) -> None:
        if isinstance(metrics, str):
            raise HookError(
                f"{type(self).__name__}: metrics is a list, write metrics=['{metrics}']."
            )
        self.every = interval_of(self, every)
        self._wanted = tuple(metrics or ())
        # The rates are added when a record is made: nobody produces them before.
        self.reads = tuple(name for name in self._wanted if not is_rate(name))
        self._writer: Background | None = None
        self._phase: Phase = "train"  # What the run is about.
        self._rates_at = -1

    def open(self, run: Run) -> Writer:
        """Make the writer; called when the run is restored, on the main process only."""
        return self._given(run) if callable(self._given) else self._given

    def before_train(self, run: Run) -> None:
        self._open(run, "train")

    def before_val(self, run: Run) -> None:
        self._open(run, "val")

    def before_test(self, run: Run) -> None:
        self._open(run, "test")

    def after_train_iter(self, run: Run) -> None:
        self._write(run, "iter")

    @limit("1 epoch")  # An interval in seconds is not meant for these.
    def after_train_epoch(self, run: Run) -> None:
        self._write_epoch(run)

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
            if run.is_interrupted:  # Whoever sent the signal does not wait long.
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
        """Write what is left when the last hook has acted, and let the writer go."""
        if self._writer is None:
            return
        self._write_rest(run)
        run.outbox.close(self._writer)
        if isinstance(getattr(self, "_given", None), Writer):
            self._writer.flush()
            self._writer.stop()
        else:
            self._writer.close()
        self._writer = None

    def _write_rest(self, run: Run) -> None:
        # A validation that was cut short is made again by the run that resumes.
        again = run.requests.validate and self._phase == "train"
        self._write(run, "iter", (lambda name: stream_of(name) == "val") if again else None)

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
        """Tell in which phase a number was measured, and what it is a mean over."""
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
