"""`WriteMetrics`: the run's numbers on disk."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from time import time
from typing import TYPE_CHECKING, cast

from hookloop.core.hook import Hook, interval_of
from hookloop.core.lr import learning_rates
from hookloop.core.priority import Priority
from hookloop.every import Every
from hookloop.metrics.rule import infer_rule, is_better
from hookloop.metrics.store import WINDOW
from hookloop.runs.layout import RunDir
from hookloop.writers.jsonl import JsonLines, drop_after

if TYPE_CHECKING:
    from hookloop.core.run import Run


class WriteMetrics(Hook):
    """Write ``metrics.jsonl``, a line per interval, epoch and evaluation, and ``summary.json``.

    In between, nothing is read from the device. A resumed run drops the lines of the iterations
    that it makes once more.

    Args:
        every: How often to write in training, in iterations or time; numbers are means since then.

    Example:
        >>> WriteMetrics(every="10 iters").every
        Every(count=10, unit='iters')
    """

    priority = Priority.BELOW_NORMAL
    on_error = "disable"

    def __init__(self, every: Every | int | str = 50) -> None:
        self.every = interval_of(self, every)
        self._window = int(self.every.count) if self.every.unit == "iters" else WINDOW
        self._writer: JsonLines | None = None
        self._started = ""
        self._trained = False
        self._best: dict[str, dict[str, float]] = {}

    def state_dict(self) -> dict[str, object]:
        return {"best": self._best, "started": self._started}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        self._best = {**cast("dict[str, dict[str, float]]", state["best"])}
        self._started = cast("str", state["started"])

    def before_run(self, run: Run) -> None:
        self._started = self._started or _now()
        self._trained = False

    def before_train(self, run: Run) -> None:
        self._trained = True
        if run.world.is_main:
            drop_after(RunDir(run.dir).metrics_file, run.progress.iter)
            self._summarize(run)

    def after_train_iter(self, run: Run) -> None:
        names = [name for name in run.metrics.names() if name.startswith("train/")]
        values = run.metrics.smooth(names, self._window)
        self._write(run, "train", "iter", values | learning_rates(run))

    def after_train_epoch(self, run: Run) -> None:
        values = {f"train/{name}": value for name, value in run.metrics.stream("train").items()}
        self._write(run, "train", "epoch", values | learning_rates(run))

    def after_val_epoch(self, run: Run, metrics: Mapping[str, float]) -> None:
        values = {f"val/{name}": value for name, value in metrics.items()}
        for name, value in values.items():
            rule = infer_rule(name)
            best = self._best.get(name)
            if rule and is_better(value, best["value"] if best else None, rule):
                progress = run.progress
                self._best[name] = {"value": value, "iter": progress.iter, "epoch": progress.epoch}
        self._write(run, "val", "epoch", values)

    def after_test_epoch(self, run: Run, metrics: Mapping[str, float]) -> None:
        self._write(run, "test", "epoch", {f"test/{n}": value for n, value in metrics.items()})

    def after_run(self, run: Run) -> None:
        if run.world.is_main:
            self._summarize(run)
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _write(self, run: Run, phase: str, span: str, values: Mapping[str, float]) -> None:
        if not run.world.is_main:
            return
        if self._writer is None:
            self._writer = JsonLines(RunDir(run.dir).metrics_file)
        progress = run.progress
        where = {"phase": phase, "span": span, "iter": progress.iter, "epoch": progress.epoch}
        self._writer.write({"time": time(), **where, **values})

    def _summarize(self, run: Run) -> None:
        directory, outcome = RunDir(run.dir), run.outcome
        old = directory.read_summary()
        ended = outcome.status != "running"
        summary = {
            "status": outcome.status,
            "reason": outcome.reason,
            "exit_code": outcome.exit_code,
            "started": self._started,
            "ended": _now() if ended else None,
            "iter": run.progress.iter,
            "epoch": run.progress.epoch,
        }
        if not self._trained and old:  # An evaluation adds its numbers to what the training left.
            summary = {key: old.get(key) for key in summary}
        latest = (
            dict(cast("Mapping[str, float]", old.get("metrics") or {})) | run.metrics.all_latest()
        )
        directory.write_summary(
            summary | {"metrics": latest, "best": self._best or old.get("best")}
        )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
