"""`PerfWatch`: time the parts of an iteration for hooks that collect ``task.perf_stats``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookloop import Hook, Priority
from hookloop.dialects import plan_of
from hookloop_dialects.vissl.utils.perf_stats import PerfStats, PerfTimer

if TYPE_CHECKING:
    from hookloop import Run


class _Begin(Hook):
    """Start the time of the next part when all hooks have been called."""

    name = "dialect:vissl:begin"
    priority = Priority.LOWEST
    draws_random_numbers = False

    def __init__(self, watch: PerfWatch) -> None:
        self._watch = watch

    def before_train_iter(self, run: Run) -> None:
        self._watch.begin("train_step_total")

    def before_forward(self, run: Run) -> None:
        self._watch.begin("forward")

    def after_forward(self, run: Run) -> None:
        self._watch.begin("loss_compute")

    def after_loss(self, run: Run) -> None:
        if run.phase == "train":
            self._watch.begin("backward")

    def before_update(self, run: Run) -> None:
        self._watch.begin("optimizer_step")

    def after_train_iter(self, run: Run) -> None:
        self._watch.begin("read_sample")

    before_train_epoch = after_train_iter


class PerfWatch(Hook):
    """Stop the time of each part before other hooks are called.

    It joins a run only when a hook sets ``task.perf_stats``.

    Attributes:
        stats: Where the times go; None to drop them.
    """

    name = "dialect:vissl:times"
    priority = Priority.HIGHEST
    draws_random_numbers = False

    def __init__(self) -> None:
        self.stats: PerfStats | None = None
        self._running: dict[str, PerfTimer] = {}

    def join(self, run: Run) -> None:
        """Join the run."""
        plan_of(run).add(self)
        plan_of(run).add(_Begin(self))

    def begin(self, name: str) -> None:
        """Start the time of a part."""
        timer = self._running[name] = PerfTimer(name, self.stats)
        timer.start()

    def _end(self, name: str) -> None:
        timer = self._running.pop(name, None)
        if timer is not None:
            timer.stop()
            timer.record()

    def before_train_iter(self, run: Run) -> None:
        self._end("read_sample")

    def after_forward(self, run: Run) -> None:
        self._end("forward")

    def after_loss(self, run: Run) -> None:
        self._end("loss_compute")

    def before_update(self, run: Run) -> None:
        self._end("backward")

    def after_update(self, run: Run) -> None:
        self._end("optimizer_step")
        self._end("train_step_total")
