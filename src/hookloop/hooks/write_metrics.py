"""`WriteMetrics`: the run's numbers on disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from hookloop.every import Every
from hookloop.hooks.write_to import WriteTo
from hookloop.metrics.best import BestValues
from hookloop.runs.layout import RunDir
from hookloop.writers.base import Writer
from hookloop.writers.jsonl import JsonLines, drop_after
from hookloop.writers.media import MediaFiles
from hookloop.writers.multi import Multi

if TYPE_CHECKING:
    from hookloop.core.run import Run


class WriteMetrics(WriteTo):
    """Write ``metrics.jsonl``, a line per interval, epoch and evaluation, and ``summary.json``.

    Pictures, text and tables that hooks emit become files under ``images``, ``texts`` and
    ``tables``. A resumed run drops the lines of the iterations that it makes once more.

    Args:
        every: How often to write in training, in iterations or time; numbers are means since then.
        metrics: Names or patterns of the numbers to write; all when not given.

    Example:
        >>> WriteMetrics(every="10 iters").every
        Every(count=10, unit='iters')
    """

    def __init__(self, every: Every | int | str = 50, metrics: Sequence[str] | None = None) -> None:
        self._set_up(every, metrics)
        self._started = ""
        self._trained = False
        self._best = BestValues()

    def open(self, run: Run) -> Writer:
        return Multi(JsonLines(RunDir(run.dir).metrics_file), MediaFiles(run.dir))

    def state_dict(self) -> dict[str, object]:
        return {"best": self._best.state_dict(), "started": self._started}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        self._best.load_state_dict(cast("Mapping[str, object]", state["best"]))
        self._started = cast("str", state["started"])

    def before_run(self, run: Run) -> None:
        self._started = self._started or _now()
        self._trained = False

    def before_train(self, run: Run) -> None:
        self._trained = True
        if run.world.is_main:
            done = run.progress
            validated = done.validated_at == done.iter
            drop_after(RunDir(run.dir).metrics_file, done.iter, validated=validated)
            self._summarize(run)
        super().before_train(run)

    def after_val_epoch(self, run: Run, metrics: Mapping[str, float]) -> None:
        super().after_val_epoch(run, metrics)
        values = {f"val/{name}": value for name, value in run.metrics.stream("val").items()}
        self._best.update(values, iter=run.progress.iter, epoch=run.progress.epoch)

    def after_run(self, run: Run) -> None:
        super().after_run(run)
        if run.world.is_main:
            self._summarize(run)

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
            summary | {"metrics": latest, "best": self._best.all() or old.get("best")}
        )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
