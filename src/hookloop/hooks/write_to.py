"""`WriteTo`: when the run's numbers go to a writer. The base of the hooks that name a backend."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from hookloop.core.contract import matches
from hookloop.core.hook import Hook, interval_of
from hookloop.core.plan import Disabled
from hookloop.core.priority import Priority
from hookloop.errors import HookError
from hookloop.every import Every
from hookloop.hooks.rates import learning_rates
from hookloop.writers.background import Background
from hookloop.writers.base import Report, Writer, warn_of_failure
from hookloop.writers.records import Config, Scalars

if TYPE_CHECKING:
    from hookloop.core.run import Phase, Run


class WriteTo(Hook):
    """Send the run's numbers, and whatever hooks emit, to a writer.

    Numbers go in training at an interval, as means since the last time (of 100 values at most), and
    after each epoch, validation and test; between these nothing is read from the device. Writing
    takes place in a thread. A writer that fails is reported once and switched off; the run goes on.

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
        self.reads = tuple(metrics or ())
        self._writer: Background | None = None

    def open(self, run: Run) -> Writer:
        """Make the writer; called when the run is restored, on the main process only."""
        return self._given(run) if callable(self._given) else self._given

    def before_train(self, run: Run) -> None:
        self._open(run)

    def before_val(self, run: Run) -> None:
        self._open(run)

    def before_test(self, run: Run) -> None:
        self._open(run)

    def after_train_iter(self, run: Run) -> None:
        if self._writer is not None:
            self._write(run, "train", "iter", run.metrics.since("train", self.name))

    def after_train_epoch(self, run: Run) -> None:
        self._write_phase(run, "train")

    def after_val_epoch(self, run: Run, metrics: Mapping[str, float]) -> None:
        self._write_phase(run, "val")

    def after_test_epoch(self, run: Run, metrics: Mapping[str, float]) -> None:
        self._write_phase(run, "test")

    def after_run(self, run: Run) -> None:
        if self._writer is None:
            return
        run.outbox.close(self._writer)
        if isinstance(getattr(self, "_given", None), Writer):
            self._writer.flush()
            self._writer.stop()
        else:
            self._writer.close()
        self._writer = None

    def _open(self, run: Run) -> None:
        if self._writer is not None or not run.world.is_main:
            return
        try:
            writer = self.open(run)
        except OSError as error:
            raise HookError(f"{type(self).__name__} cannot write: {error}") from error
        self._writer = Background(writer, report=self._reporter(run))
        if run.config:
            self._writer.write([Config(run.config)])
        run.outbox.open(self._writer)

    def _reporter(self, run: Run) -> Report:
        """Return what reports a writer that failed, in whichever thread."""

        def report(writer: Writer, error: BaseException) -> None:
            warn_of_failure(writer, error)
            reason = f"{type(error).__name__}: {error}"
            run.plan.disabled.append(Disabled(self.name, f"writing ({writer.name})", reason))

        return report

    def _write_phase(self, run: Run, phase: Phase) -> None:
        if self._writer is not None:
            # Asked from the store, which also has what other hooks put there at this point.
            values = {f"{phase}/{name}": v for name, v in run.metrics.stream(phase).items()}
            self._write(run, phase, "epoch", values)

    def _write(self, run: Run, phase: Phase, span: str, values: Mapping[str, float]) -> None:
        assert self._writer is not None
        if phase == "train":
            values = {**values, **learning_rates(run)}
        if chosen := self._choose(values):
            progress = run.progress
            self._writer.write([Scalars(chosen, progress.iter, progress.epoch, phase, span)])

    def _choose(self, values: Mapping[str, float]) -> dict[str, float]:
        if not self.reads:
            return dict(values)
        return {
            name: value
            for name, value in values.items()
            if any(matches(name, wanted) for wanted in self.reads)
        }
