"""`RecordHookTimes`: measure how long each hook takes."""

from __future__ import annotations

from collections import defaultdict
from time import perf_counter
from typing import TYPE_CHECKING

from hookloop.engine.hook import Call, Hook, Priority
from hookloop.runs.layout import write_text
from hookloop.runs.policy import Machine

if TYPE_CHECKING:
    from hookloop.engine.run import Phase, Run


class RecordHookTimes(Hook):
    """Measure the time of every call of every hook.

    After each training epoch ``train/hook_time/<hook>`` is recorded, the seconds per iteration that
    a hook took since the end of the last epoch, validation included. At the end ``hook_times.txt``
    lists them by hook and mount point; a test or validation without training writes
    ``hook_times_test.txt`` or ``hook_times_val.txt`` instead. The time of GPU kernels that a hook
    only launches does not count.

    Args:
        file: Name of the table in the run directory; None for none.

    Example:
        >>> RecordHookTimes().writes
        ('train/hook_time/*',)
    """

    ranks = "first"
    priority = Priority.HIGHEST  # Wraps the others before they are first called.
    writes = (Machine("train/hook_time/*"),)
    draws_random_numbers = False

    def __init__(self, file: str | None = "hook_times.txt") -> None:
        self.file = file
        self._spent: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0, 0.0])
        self._epoch: dict[str, float] = {}
        self._since_iter = 0
        self._phase: Phase | None = None

    def before_run(self, run: Run) -> None:
        self._spent.clear()
        self._phase = None
        run.plan.wrap(self._measured)

    def before_train(self, run: Run) -> None:
        self._phase = "train"
        self._since_iter = run.progress.iter

    def before_val(self, run: Run) -> None:
        self._phase = self._phase or "val"

    def before_test(self, run: Run) -> None:
        self._phase = self._phase or "test"

    def before_predict(self, run: Run) -> None:
        self._phase = self._phase or "predict"

    def after_train_epoch(self, run: Run) -> None:
        totals = self._totals()
        iters = max(run.progress.iter - self._since_iter, 1)  # A resumed epoch may have none left.
        for hook, seconds in totals.items():
            spent = seconds - self._epoch.get(hook, 0.0)
            run.metrics.put(f"train/hook_time/{hook}", spent / iters)
        self._epoch, self._since_iter = totals, run.progress.iter

    def after_run(self, run: Run) -> None:
        self._epoch = {}
        if self.file is not None:
            path = run.dir / self.file
            if self._phase not in (None, "train"):  # Do not overwrite the table of the training.
                path = path.with_stem(f"{path.stem}_{self._phase}")
            write_text(path, self.table())

    def costs(self) -> dict[tuple[str, str], tuple[int, float]]:
        """Return calls and seconds so far, by hook and mount point."""
        return {key: (int(calls), seconds) for key, (calls, seconds) in self._spent.items()}

    def table(self) -> str:
        """Return the measured times as a table, the longest first."""
        rows = sorted(self._spent.items(), key=lambda row: -row[1][1])
        lines = [f"{'hook':<24}{'point':<24}{'calls':>9}{'total s':>12}{'us per call':>14}"]
        lines += [
            f"{hook:<24}{point:<24}{calls:>9.0f}{seconds:>12.4f}{seconds / calls * 1e6:>14.1f}"
            for (hook, point), (calls, seconds) in rows
        ]
        return "\n".join(lines) + "\n"

    def _totals(self) -> dict[str, float]:
        totals: dict[str, float] = {}
        for (hook, _), (_, seconds) in self._spent.items():
            totals[hook] = totals.get(hook, 0.0) + seconds
        return totals

    def _measured(self, call: Call, hook: Hook, point: str) -> Call:
        spent = self._spent  # A local name costs less than an attribute, in every call.

        def measured(*args: object) -> None:
            since = perf_counter()
            try:
                call(*args)
            finally:  # The call that fails is counted too.
                row = spent[hook.name, point]
                row[0] += 1
                row[1] += perf_counter() - since

        return measured
