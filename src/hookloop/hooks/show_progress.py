"""`ShowProgress`: the run on the screen."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import TYPE_CHECKING, TextIO, cast

from hookloop.core.hook import Hook, Priority, interval_of, limit
from hookloop.every import Every
from hookloop.hooks._displays import Display, Lines, choose_display
from hookloop.hooks._wording import (
    duration,
    is_of_training,
    new_numbers,
    numbers,
    of,
    own_numbers,
    recent_numbers,
    rest_numbers,
    short_names,
    sparkline,
    without_times,
)
from hookloop.metrics.best import BestValues
from hookloop.metrics.curve import Curve
from hookloop.metrics.results import without_phase

if TYPE_CHECKING:
    from hookloop.core.run import Phase, Run

BEST = 3  # Best metrics named at the end.
STYLES = {"completed": "bold green", "stopped": "bold green", "failed": "bold red"}


class ShowProgress(Hook):
    """Show bars on a terminal, one updated output in a notebook, and plain lines everywhere else.

    The first and the last lines name the run directory. At the end stand the time, the curve of the
    loss and the best metrics.

    Args:
        every: Interval of the plain lines, in iterations or time.
        file: Where to; the standard output by default.
        summary: Whether to close with a summary.

    Example:
        >>> str(ShowProgress(every=10).every)
        '10 iters'
    """

    priority = Priority.BELOW_NORMAL
    on_error = "disable"
    draws_random_numbers = False

    def __init__(
        self, every: Every | int | str = 50, file: TextIO | None = None, *, summary: bool = True
    ) -> None:
        interval = interval_of(self, every)
        self.summary = summary
        self._file = file
        self._kind = choose_display(file)
        # Bars look at the clock themselves, which costs less than a schedule in seconds would.
        self.every = interval if self._kind is Lines else None
        self._display: Display | None = None
        self._losses = {"epochs": Curve(), "intervals": Curve()}
        self._best = BestValues()
        self._before = 0.0
        self._began = monotonic()
        self._batches = 0
        self._trains = False

    def state_dict(self) -> dict[str, object]:
        return {
            "losses": {span: curve.state_dict() for span, curve in self._losses.items()},
            "best": self._best.state_dict(),
            "seconds": self._seconds(),
        }

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        for span, curve in cast("Mapping[str, Mapping[str, object]]", state["losses"]).items():
            self._losses[span].load_state_dict(curve)
        self._best.load_state_dict(cast("Mapping[str, object]", state["best"]))
        self._before = cast("float", state["seconds"])

    def before_run(self, run: Run) -> None:
        if run.world.is_main:
            self._display = self._kind(self._file)
        self._began = monotonic()
        self._trains = False

    def before_train(self, run: Run) -> None:
        self._trains = True
        if self._display is not None:
            progress = run.progress
            again = f", going on after iteration {progress.iter}" if progress.iter else ""
            self._display.say(f"{run.dir}  on {run.device}{again}", style="bold")
            self._display.say(f"hooks: {', '.join(hook.name for hook in run.hooks)}", style="dim")
            self._display.start(run)

    def after_train_iter(self, run: Run) -> None:
        if self._display is not None and self._display.is_due():
            if isinstance(self._display, Lines):
                recent = short_names(new_numbers(run, self.name))
            else:  # They follow so closely that they need a window.
                recent = recent_numbers(run)
            self._keep_loss("intervals", recent)
            self._display.train(run, recent)

    def after_train_epoch(self, run: Run) -> None:
        if self._display is not None:
            means = run.metrics.stream("train").short()
            self._keep_loss("epochs", means)
            own = own_numbers(run, self.name, run.metrics.has_epoch_mean)
            self._say(run, "train", without_times(means) | own)

    def before_val_epoch(self, run: Run) -> None:
        self._batches = 0

    def after_val_iter(self, run: Run) -> None:
        self._evaluate(run)

    def after_val_epoch(self, run: Run, metrics: Mapping[str, float]) -> None:
        self._best.update(metrics, iter=run.progress.iter, epoch=run.progress.epoch)
        own = own_numbers(run, self.name, is_of_training)
        self._say(run, "val", without_phase(metrics, "val") | own)

    @limit("1 epoch")
    def after_epoch_profile(self, run: Run) -> None:
        self._say_rest(run)

    def before_test_epoch(self, run: Run) -> None:
        self._batches = 0

    def after_test_iter(self, run: Run) -> None:
        self._evaluate(run)

    def after_test_epoch(self, run: Run, metrics: Mapping[str, float]) -> None:
        own = own_numbers(run, self.name)
        self._say(run, "test", without_phase(metrics, "test") | own)

    def after_run(self, run: Run) -> None:
        if self._display is None:
            return
        self._display.stop()
        self._say_rest(run)
        if self._trains:
            self._conclude(run, self._display)
        self._display = None

    def _evaluate(self, run: Run) -> None:
        self._batches += 1
        if self._display is not None and self._display.is_due():
            sources = run.val_data if run.phase == "val" else run.test_data
            counts = [source.num_batches for source in sources.values()]
            total = None if None in counts else sum(cast("list[int]", counts))
            self._display.evaluate(run, self._batches, total)

    def _say(self, run: Run, phase: Phase, metrics: Mapping[str, float]) -> None:
        if self._display is not None:
            self._display.say(f"{_where(run)}  {phase}: {numbers(metrics)}")

    def _say_rest(self, run: Run) -> None:
        """Show what hooks put after the lines to which it would belong."""
        if self._display is not None and (rest := rest_numbers(run, self.name)):
            self._display.say(f"{_where(run)}  {numbers(rest)}")

    def _keep_loss(self, span: str, values: Mapping[str, float]) -> None:
        loss = next((value for name, value in values.items() if name.endswith("loss")), None)
        if loss is not None:
            self._losses[span].add(loss)

    def _conclude(self, run: Run, display: Display) -> None:
        outcome, progress = run.outcome, run.progress
        display.say(
            f"{outcome} after {progress.iter} iterations, {progress.epoch} epochs "
            f"in {duration(self._seconds())}",
            style="bold yellow" if outcome.disabled else STYLES.get(outcome.status, "bold yellow"),
        )
        if not self.summary:
            return
        epochs, intervals = (self._losses[span].values for span in ("epochs", "intervals"))
        losses = epochs if len(epochs) > 1 else intervals
        if len(losses) > 1:
            display.say(f"  loss  {losses[0]:.4g} {sparkline(losses)} {losses[-1]:.4g}")
        best = self._best.all()
        ranked = sorted(best, key=lambda name: name.endswith("loss"))  # What was asked for first.
        for name in ranked[:BEST]:
            one = best[name]
            where = f"epoch {one['epoch']}, iteration {one['iter']}"
            display.say(f"  best  {name} {one['value']:.4g} at {where}")
        display.say(f"  in    {run.dir}")

    def _seconds(self) -> float:
        return self._before + monotonic() - self._began


def _where(run: Run) -> str:
    progress = run.progress
    where = f"epoch {of(progress.epoch, progress.max_epochs)}"
    if progress.max_epochs is None:
        where += f"  iter {of(progress.iter, progress.max_iters)}"
    return where
