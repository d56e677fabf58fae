"""`ShowProgress`: the run on the screen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TextIO, cast

from hookloop.engine.hook import Hook, Priority
from hookloop.every import Every, count_of, limit
from hookloop.hooks._intervals import interval_of
from hookloop.hooks._stopwatch import Stopwatch
from hookloop.hooks.showing._displays import Display, Lines, choose_display
from hookloop.hooks.showing._wording import (
    drop_train_prefix,
    format_count,
    format_duration,
    format_numbers,
    format_progress,
    is_training_metric,
    read_new,
    read_new_of_hooks,
    read_recent,
    read_unshown,
    sparkline,
    without_times,
)
from hookloop.metrics.results import without_phase
from hookloop.metrics.scores import BestValues

if TYPE_CHECKING:
    from hookloop.engine.run import Phase, Run

BEST = 3  # How many best metrics the summary shows.
STYLES = {"completed": "bold green", "stopped": "bold green", "failed": "bold red"}


class ShowProgress(Hook):
    """Show bars on a terminal, one updated output in a notebook, and plain lines everywhere else.

    The first and the last line name the run directory. At the end it shows the time, the curve of
    the loss and the best metrics.

    Args:
        every: Interval of the plain lines, in iterations or time.
        file: Where to write; standard output by default.
        summary: Whether to end with a summary.

    Example:
        >>> str(ShowProgress(every=10).every)
        '10 iters'
    """

    ranks = "first"
    priority = Priority.BELOW_NORMAL  # After the hooks that put numbers at the same point.
    on_error = "disable"
    draws_random_numbers = False

    def __init__(
        self, every: Every | int | str = 50, file: TextIO | None = None, *, summary: bool = True
    ) -> None:
        interval = interval_of(self, every)
        self.summary = summary
        self._file = file
        self._display_class = choose_display(file)
        # Bars check the clock themselves, which costs less than an interval in seconds.
        self.every = interval if self._display_class is Lines else None
        self._display: Display | None = None
        self._losses = {"epochs": Curve(), "intervals": Curve()}
        self._best = BestValues()
        self._watch = Stopwatch()
        self._batches = 0
        self._has_trained = False

    def state_dict(self) -> dict[str, object]:
        return {
            "losses": {span: curve.state_dict() for span, curve in self._losses.items()},
            "best": self._best.state_dict(),
            "seconds": self._watch.seconds,
        }

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        for span, curve in cast("Mapping[str, Mapping[str, object]]", state["losses"]).items():
            self._losses[span].load_state_dict(curve)
        self._best.load_state_dict(cast("Mapping[str, object]", state["best"]))
        self._watch.load(cast("float", state["seconds"]))

    def before_run(self, run: Run) -> None:
        self._display = self._display_class(self._file)
        self._watch.start()
        self._has_trained = False

    def before_train(self, run: Run) -> None:
        self._has_trained = True
        if self._display is not None:
            progress = run.progress
            again = f", continuing after iteration {progress.iter}" if progress.iter else ""
            ranks = "" if run.world.is_alone else f", {run.world.size} ranks"
            self._display.show_line(f"{run.dir}  on {run.device}{ranks}{again}", style="bold")
            self._display.show_line(
                f"hooks: {', '.join(hook.name for hook in run.hooks)}", style="dim"
            )
            self._display.start(run)

    def after_train_iter(self, run: Run) -> None:
        if self._display is not None and self._display.begin_update():
            if isinstance(self._display, Lines):
                recent = drop_train_prefix(read_new(run, self.name))
            else:  # Bars are updated so often that single numbers would flicker: use a window.
                recent = read_recent(run)
            self._add_loss("intervals", recent)
            self._display.show_training(run, recent)

    def after_train_epoch(self, run: Run) -> None:
        if self._display is not None:
            means = run.metrics.stream("train").short()
            self._add_loss("epochs", means)
            own = read_new_of_hooks(run, self.name, run.metrics.has_epoch_mean)
            self._show_phase(run, "train", without_times(means) | own)

    def before_val_epoch(self, run: Run) -> None:
        self._batches = 0

    def after_val_iter(self, run: Run) -> None:
        self._evaluate(run)

    def after_val_epoch(self, run: Run, metrics: Mapping[str, float]) -> None:
        self._best.update(metrics, iter=run.progress.iter, epoch=run.progress.epoch)
        own = read_new_of_hooks(run, self.name, is_training_metric)
        self._show_phase(run, "val", without_phase(metrics, "val") | own)

    @limit("1 epoch")
    def after_epoch_profile(self, run: Run) -> None:
        self._show_rest(run)

    def before_test_epoch(self, run: Run) -> None:
        self._batches = 0

    def after_test_iter(self, run: Run) -> None:
        self._evaluate(run)

    def after_test_epoch(self, run: Run, metrics: Mapping[str, float]) -> None:
        own = read_new_of_hooks(run, self.name)
        self._show_phase(run, "test", without_phase(metrics, "test") | own)

    def after_run(self, run: Run) -> None:
        if self._display is None:
            return
        # First: the bars would be drawn below the lines that follow.
        self._display.stop()
        # After a failure of one of many ranks nothing stands between the reason and the user.
        if run.world.is_alone or not run._internals.ranks.is_broken:
            self._show_rest(run)
            if self._has_trained:
                self._show_summary(run, self._display)
        self._display = None

    def _evaluate(self, run: Run) -> None:
        self._batches += 1
        if self._display is not None and self._display.begin_update():
            sources = run.val_data if run.phase == "val" else run._internals.test_data
            counts = [source.num_batches for source in sources.values()]
            # The length of an iterable data source may be unknown.
            total = None if None in counts else sum(cast("list[int]", counts))
            self._display.show_evaluation(run, self._batches, total)

    def _show_phase(self, run: Run, phase: Phase, metrics: Mapping[str, float]) -> None:
        if self._display is not None:
            numbers = format_numbers(metrics) or "no metrics"
            self._display.show_line(f"{_format_where(run)}  {phase}: {numbers}")

    def _show_rest(self, run: Run) -> None:
        """Show values that hooks put after their line was shown."""
        if self._display is not None and (rest := read_unshown(run, self.name)):
            self._display.show_line(f"{_format_where(run)}  {format_numbers(rest)}")

    def _add_loss(self, span: str, values: Mapping[str, float]) -> None:
        loss = next((value for name, value in values.items() if name.endswith("loss")), None)
        if loss is not None:
            self._losses[span].add(loss)

    def _show_summary(self, run: Run, display: Display) -> None:
        outcome, progress = run.outcome, run.progress
        display.show_line(
            f"{outcome} after {count_of(progress.iter, 'iteration')}, "
            f"{count_of(progress.epoch, 'epoch')} in {format_duration(self._watch.seconds)}",
            style="bold yellow" if outcome.disabled else STYLES.get(outcome.status, "bold yellow"),
        )
        if not self.summary:
            return
        # A run of one epoch, or of none, has no curve of epochs.
        epochs, intervals = (self._losses[span].values for span in ("epochs", "intervals"))
        losses = epochs if len(epochs) > 1 else intervals
        if len(losses) > 1:
            display.show_line(f"  loss  {losses[0]:.4g} {sparkline(losses)} {losses[-1]:.4g}")
        best = self._best.all()
        ranked = sorted(best, key=lambda name: name.endswith("loss"))  # Losses last.
        for name in ranked[:BEST]:
            value = best[name]
            where = f"epoch {value['epoch']}, iteration {value['iter']}"
            display.show_line(f"  best  {name} {value['value']:.4g} at {where}")
        if run._internals.root is not None:
            display.show_line(
                f"  root  {run._internals.root} of fingerprints.jsonl: a note of it proves "
                "them later"
            )
        display.show_line(f"  in    {run.dir}")


def _format_where(run: Run) -> str:
    """Return after which epoch it is or, in the middle of one, at which iteration."""
    progress = run.progress
    if progress.stage == "inside":
        return format_progress(run)
    where = f"epoch {format_count(progress.epoch, progress.max_epochs)}"
    if progress.max_epochs is None:
        where += f"  iter {format_count(progress.iter, progress.max_iters)}"
    return where


LENGTH = 400


class Curve:
    """Values at even distances; when there are too many, every other one is removed.

    Args:
        length: How many values to keep at most.

    >>> curve = Curve(length=4)
    >>> for value in range(10):
    ...     curve.add(value)
    >>> curve.values
    [0, 4, 8, 9]
    """

    def __init__(self, length: int = LENGTH) -> None:
        self.length = length
        self._kept: list[float] = []
        self._distance = 1
        self._count = 0
        self._newest = 0.0

    @property
    def values(self) -> list[float]:
        """The values that are kept, and always the newest one."""
        is_kept = (self._count - 1) % self._distance == 0
        return [*self._kept] if is_kept or not self._count else [*self._kept, self._newest]

    def add(self, value: float) -> None:
        """Add the next value."""
        if self._count % self._distance == 0:
            self._kept.append(value)
            # Every other one goes, and not the oldest: the curve must show the whole run.
            if len(self._kept) > self.length:
                self._kept = self._kept[::2]
                self._distance *= 2
        self._count += 1
        self._newest = value

    def state_dict(self) -> dict[str, object]:
        """Return plain values, for a checkpoint."""
        return {
            "kept": list(self._kept),
            "distance": self._distance,
            "count": self._count,
            "newest": self._newest,
        }

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Restore what `state_dict` returned."""
        self._kept = list(cast("list[float]", state["kept"]))
        self._distance = cast("int", state["distance"])
        self._count = cast("int", state["count"])
        self._newest = cast("float", state["newest"])
