"""`RecordHookTimes`: measure how long each hook takes."""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from collections.abc import Mapping
from time import perf_counter
from typing import TYPE_CHECKING

from hookloop.engine.hook import Call, Hook, Priority
from hookloop.errors import HookError
from hookloop.runs.layout import write_text
from hookloop.runs.policy import Machine

if TYPE_CHECKING:
    from hookloop.engine.run import Phase, Run


_log = logging.getLogger("hookloop")


def parse_budgets(cost: Mapping[str, str | float]) -> dict[str, float]:
    """Read shares of the time by the name of a hook: ``"1 %"`` or ``0.01``.

    >>> parse_budgets({"record_norms": "0.5 %", "": 0.01})
    {'record_norms': 0.005, '': 0.01}
    """
    return {name: _share(share) for name, share in cost.items()}


def _share(value: str | float) -> float:
    text = str(value).strip()
    try:
        share = float(text.removesuffix("%")) / 100 if text.endswith("%") else float(text)
    except ValueError:
        share = math.nan
    if isinstance(value, bool) or not 0 < share <= 1:
        raise HookError(f"cost={value!r} is no share of the time: write '1 %' or 0.01.")
    return share


def _budgets_of(cost: str | float | Mapping[str, str | float] | None) -> dict[str, float]:
    if cost is None:
        return {}
    return parse_budgets(cost if isinstance(cost, Mapping) else {"": cost})


class RecordHookTimes(Hook):
    """Measure the time of every call of every hook.

    After each training epoch ``train/hook_time/<hook>`` is recorded, the seconds per iteration that
    a hook took since the end of the last epoch, validation included. At the end ``hook_times.txt``
    lists them by hook and mount point; a test or validation without training writes
    ``hook_times_test.txt`` or ``hook_times_val.txt`` instead. The time of GPU kernels that a hook
    only launches does not count.

    A hook that costs more than ``cost`` allows is reported once, after the epoch in which it did,
    with the interval that would keep the budget. It goes on acting: a hook that a clock leaves out
    would act elsewhere at a resume, and no replay could repeat the run.

    Args:
        file: Name of the table in the run directory; None for none.
        cost: What hooks may cost of the time of an epoch: ``"1 %"`` for each, or by name,
            ``{"record_norms": "0.5 %"}``.

    Example:
        >>> RecordHookTimes(cost="1 %").writes
        ('train/hook_time/*',)
    """

    ranks = "first"
    priority = Priority.HIGHEST  # Wraps the others before they are first called.
    writes = (Machine("train/hook_time/*"),)
    draws_random_numbers = False

    def __init__(
        self,
        file: str | None = "hook_times.txt",
        cost: str | float | Mapping[str, str | float] | None = None,
    ) -> None:
        self.file = file
        self.cost = cost
        self._budgets = _budgets_of(cost)
        self._reported: set[str] = set()
        self._epoch_began = 0.0
        self._spent: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0, 0.0])
        self._epoch: dict[str, float] = {}
        self._since_iter = 0
        self._phase: Phase | None = None

    def before_run(self, run: Run) -> None:
        self._spent.clear()
        self._phase = None
        self._reported.clear()
        run._plan.wrap(self._measured)

    def before_train(self, run: Run) -> None:
        self._phase = "train"
        self._since_iter = run.progress.iter

    def before_train_epoch(self, run: Run) -> None:
        self._epoch_began = perf_counter()

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
            self._judge(hook, spent / (perf_counter() - self._epoch_began))
        self._epoch, self._since_iter = totals, run.progress.iter

    def _judge(self, hook: str, share: float) -> None:
        """Report a hook that costs more than it may, once."""
        most = self._budgets.get(hook, self._budgets.get(""))
        if most is None or share <= most or hook in self._reported:
            return
        self._reported.add(hook)
        often = math.ceil(share / most)
        _log.warning(
            "The hook '%s' cost %.1f %% of the time of this epoch, and may cost %.1f %%: let it "
            "act only every %d-th time that it acts now (every=), or raise cost=.",
            hook, 100 * share, 100 * most, often,
        )  # fmt: skip

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
