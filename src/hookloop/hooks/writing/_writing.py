"""`Writing`: the base of all hooks that write the numbers of a run.

A subclass returns its writer from `open`. The rest of the path is the same for every backend:
metric store -> records -> a thread -> writer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal

from hookloop.engine.checks import matches
from hookloop.engine.hook import Hook, Priority
from hookloop.errors import HookError
from hookloop.every import Every, limit
from hookloop.hooks._intervals import interval_of
from hookloop.metrics.store import EPOCH_STREAM, stream_of
from hookloop.outcome import Disabled
from hookloop.writers.background import Background
from hookloop.writers.base import Report, Writer, warn_of_failure
from hookloop.writers.records import Config, Record, Scalars

if TYPE_CHECKING:
    from hookloop.engine.run import Phase, Run
    from hookloop.requests import Rewind

Span = Literal["iter", "epoch"]


class Writing(Hook):
    """Send the numbers of a run, and the records that hooks emit, to a writer.

    Each value in the metric store is written once, at the next write, with the iteration in which
    it was put; several new values are written as their mean, of 100 values at most. Metrics of
    iterations are written at the interval, all others also after each epoch, validation and test,
    and the rest when the run ends. In between nothing is read from the device. Writing happens in a
    thread. A writer that fails is reported once and switched off; the run continues.

    Args:
        every: Interval in training, in iterations or time.
        metrics: Names or patterns of the numbers to write; all by default.
    """

    ranks = "first"
    sends = True
    priority = Priority.BELOW_NORMAL  # After the hooks that put numbers at the same point.
    on_error = "disable"  # The loss of a backend must not end the training.

    def __init__(self, every: Every | int | str = 50, metrics: Sequence[str] | None = None) -> None:
        if isinstance(metrics, str):
            raise HookError(
                f"{type(self).__name__}: metrics must be a list, write metrics=['{metrics}']."
            )
        self.every = interval_of(self, every)
        self._patterns = tuple(metrics or ())
        # Learning rates are added to a record directly: no hook declares that it puts them.
        self.reads = tuple(name for name in self._patterns if not is_learning_rate(name))
        self._writer: Background | None = None
        self._leaves_open = False  # Whether the user closes the writer.
        # What a subclass writes beyond the numbers; None costs nothing in an iteration.
        self._write_extras: Callable[[Run, str], None] | None = None
        self._phase: Phase = "train"  # The phase that the run was started for.
        self._rates_written_at = -1

    def open(self, run: Run) -> Writer:
        """Return the writer; called after the run is restored, in the main process only."""
        raise NotImplementedError

    def before_train(self, run: Run) -> None:
        self._open(run, "train")

    def before_val(self, run: Run) -> None:
        self._open(run, "val")

    def before_test(self, run: Run) -> None:
        self._open(run, "test")

    def after_train_iter(self, run: Run) -> None:
        self._write(run, "iter")
        if self._write_extras is not None:
            self._write_extras(run, "iters")

    @limit("1 epoch")  # Without this, an interval in seconds would skip some epochs.
    def after_train_epoch(self, run: Run) -> None:
        self._write_epoch(run)
        if self._write_extras is not None:
            self._write_extras(run, "epochs")

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

    def after_rewind(self, run: Run, rewind: Rewind) -> None:
        # Opened again, as at a resume, so that it drops or skips what is written a second time.
        if self._writer is not None:
            self._close(run)
            self._rates_written_at = -1
            self.before_train(run)

    def after_run(self, run: Run) -> None:
        # Hooks that act later may still put values, so the writer is closed after them, in `_end`.
        self._write_rest(run)
        if self._writer is not None:
            if run.is_interrupted:  # A scheduler that sent the signal soon kills the process.
                self._writer.hurry()
            self._writer.flush()

    def _open(self, run: Run, phase: Phase) -> None:
        if self._writer is not None:
            return
        self.check_setup()
        try:
            writer = self.open(run)
        except OSError as error:
            raise HookError(f"{type(self).__name__} cannot write: {error}") from error
        self._phase = phase
        self._writer = Background(writer, report=self._make_report(run))
        if run.config:
            self._writer.write([Config(run.config)])
        run._internals.outbox.open(self._writer, partial(self._end, run))

    def _end(self, run: Run) -> None:
        """Write what is left after the last hook, and close the writer."""
        if self._writer is not None:
            self._write_rest(run)
            self._close(run)

    def _close(self, run: Run) -> None:
        assert self._writer is not None
        run._internals.outbox.close(self._writer)
        if self._leaves_open:
            self._writer.flush()
            self._writer.stop()
        else:
            self._writer.close()
        self._writer = None

    def _write_rest(self, run: Run) -> None:
        # A resumed run repeats a validation that was cut short, and writes it then.
        is_cut_short = run._internals.requests.validate and self._phase == "train"
        self._write(run, "iter", (lambda name: stream_of(name) == "val") if is_cut_short else None)

    def _write_epoch(self, run: Run) -> None:
        """Write the numbers of an epoch; metrics of iterations wait for their interval."""
        self._write(run, "epoch", run.metrics.has_epoch_mean)

    def _write_evaluation(self, run: Run) -> None:
        if not run.is_interrupted:
            self._write(run, "epoch", lambda name: stream_of(name) == "train")

    def _write(self, run: Run, span: Span, skip: Callable[[str], bool] | None = None) -> None:
        """Write the new values, each with its own iteration."""
        if self._writer is None:
            return
        now = (run.progress.iter, run.progress.epoch)
        records: list[Record] = []
        for stamp, values in run.metrics.read_new(self.name, now, skip).items():
            groups: dict[tuple[str, str], dict[str, float]] = {}
            for name, value in values.items():
                groups.setdefault(self._phase_and_span(run, name, span), {})[name] = value
            for (phase, group_span), group in groups.items():
                # Learning rates are written once per iteration, with its newest numbers.
                is_newest = stamp == now and self._rates_written_at != now[0]
                if (phase, group_span) == ("train", "iter") and is_newest:
                    self._rates_written_at = now[0]
                    group.update(learning_rates(run) | group)
                if chosen := self._choose(group):
                    records.append(Scalars(chosen, *stamp, phase, group_span))
        self._send(records)

    def _send(self, records: Sequence[Record]) -> None:
        assert self._writer is not None
        self._writer.write(records)

    def _phase_and_span(self, run: Run, name: str, span: Span) -> tuple[str, str]:
        """Return the phase that measured a metric, and what it is a mean over."""
        stream = stream_of(name)
        if stream in ("val", "test"):
            return stream, "epoch"
        if stream:
            return "train", "epoch" if stream == EPOCH_STREAM else span
        # A hook's own metric. A run that only evaluates stays in its phase to the end.
        return run.phase if self._phase == "train" else self._phase, span

    def _make_report(self, run: Run) -> Report:
        """Return a function that reports a failed writer, which may be called in any thread."""

        def report(writer: Writer, error: BaseException) -> None:
            warn_of_failure(writer, error)
            reason = f"{type(error).__name__}: {error}"
            run._plan.disabled.append(Disabled(self.name, f"writing ({writer.name})", reason))

        return report

    def _choose(self, values: Mapping[str, float]) -> dict[str, float]:
        if not self._patterns:
            return dict(values)
        return {
            name: value
            for name, value in values.items()
            if any(matches(name, pattern) for pattern in self._patterns)
        }


def learning_rates(run: Run) -> dict[str, float]:
    """Return ``lr`` of the first parameter group, or ``lr/<optimizer>`` if there are several.

    A name that a hook puts itself is left out.
    """
    several = len(run.optimizers) > 1
    return {
        label: float(optimizer.param_groups[0]["lr"])
        for name, optimizer in run.optimizers.items()
        if (label := f"lr/{name}" if several else "lr") not in run.metrics
    }


def is_learning_rate(name: str) -> bool:
    """Return whether a name is that of a learning rate."""
    return name == "lr" or name.startswith("lr/")
