"""`WriteMetrics`: the numbers of a run in its directory."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from hookloop.checkpoint.state.shape import Maybe, check_state, is_count, is_text
from hookloop.data.position.measures import batch_size_of
from hookloop.every import Every
from hookloop.hooks._stopwatch import Stopwatch
from hookloop.hooks.saving.save_checkpoint import SaveCheckpoint
from hookloop.hooks.writing._timetable import Timetable
from hookloop.hooks.writing._writing import Writing
from hookloop.metrics.scores import BestValues
from hookloop.runs.identity import Identity
from hookloop.runs.layout import RunDir
from hookloop.runs.policy import Rule, machine_names
from hookloop.runs.reader import trained_seconds
from hookloop.writers.base import Multi, Writer
from hookloop.writers.jsonl import JsonLines, drop_after, keep_first
from hookloop.writers.media import MediaFiles

if TYPE_CHECKING:
    from hookloop.engine.run import Run

_log = logging.getLogger("hookloop")


class WriteMetrics(Writing):
    """Write ``metrics.jsonl``, a line per interval, epoch and evaluation, and ``summary.json``.

    Images, text, tables and histograms that hooks emit become files under ``images``, ``texts``,
    ``tables`` and ``histograms``, listed in ``media.jsonl``. ``hooks.json`` has the timetable:
    which hook acts where, what each call cost in a few iterations, and the state of each hook. A
    resumed run drops the lines of the iterations that it repeats.

    Args:
        every: Interval in training, in iterations or time; numbers are means since the last line,
            of 100 values at most.
        metrics: Names or patterns of the numbers to write; all by default.

    Example:
        >>> WriteMetrics(every="10 iters").every
        Every(count=10, unit='iters')
    """

    sends = False  # Its files are in the directory of the run.
    draws_random_numbers = False

    def __init__(self, every: Every | int | str = 50, metrics: Sequence[str] | None = None) -> None:
        super().__init__(every, metrics)
        self._started = ""
        self._trained = False
        self._evaluated: list[str] = []
        self._best = BestValues()
        self._file: JsonLines | None = None
        self._lines_at_checkpoint: int | None = None
        self._watch = Stopwatch()
        self._is_failing = False
        self._timetable = Timetable()

    def open(self, run: Run) -> Writer:
        self._file = JsonLines(RunDir(run.dir).metrics_file)
        # With a report for each: an image that cannot be written must not stop the numbers.
        return Multi(self._file, MediaFiles(run.dir), report=self._make_report(run))

    def state_dict(self) -> dict[str, object]:
        # Lines from before a checkpoint are never written again, so none may be lost.
        if self._writer is not None:
            self._writer.flush()
        lines = self._file.lines if self._file is not None else self._lines_at_checkpoint
        return {
            "best": self._best.state_dict(),
            "started": self._started,
            "seconds": self._watch.seconds,
            "lines": lines,
        }

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        check_state(state, {"started": is_text, "lines?": Maybe(is_count)})
        self._best.load_state_dict(cast("Mapping[str, object]", state["best"]))
        self._started = cast("str", state["started"])
        self._lines_at_checkpoint = cast("int | None", state.get("lines"))
        self._watch.load(cast("float", state.get("seconds", 0.0)))

    def before_run(self, run: Run) -> None:
        # More exact than the others: runs are listed in the order in which they began.
        self._started = self._started or _now("milliseconds")
        # The summary also has the time after the checkpoint.
        self._watch.load(trained_seconds(RunDir(run.dir)))
        self._watch.start()
        self._trained = False
        self._evaluated = []

    def before_train(self, run: Run) -> None:
        self._trained = True
        if run._internals.is_from_other:  # What the checkpoint says is when that run began.
            self._started = _now("milliseconds")
        self._drop_repeated_lines(run)
        self._summarize(run)
        self._timetable.begin(run)
        super().before_train(run)

    def after_train_iter(self, run: Run) -> None:
        super().after_train_iter(run)
        self._timetable.update(run)  # A training by iterations may have one long epoch.

    def after_train_epoch(self, run: Run) -> None:
        super().after_train_epoch(run)
        self._timetable.update(run)

    def after_val_epoch(self, run: Run, metrics: Mapping[str, float]) -> None:
        super().after_val_epoch(run, metrics)
        self._evaluated.append("val")
        done, rules = run.progress, _best_rules(run)
        self._best.update(metrics, iter=done.iter, epoch=done.epoch, rules=rules)
        if self._trained:
            if self._writer is not None:  # What the summary has must be among the lines, too.
                self._writer.flush()
            self._update_summary(run)
            self._timetable.update(run)

    def after_test_epoch(self, run: Run, metrics: Mapping[str, float]) -> None:
        super().after_test_epoch(run, metrics)
        self._evaluated.append("test")

    def after_run(self, run: Run) -> None:
        super().after_run(run)
        if self._trained:
            self._timetable.stop(run)
            self._timetable.write(run)
            self._watch.stop()  # That of an evaluation is forgotten.
        self._summarize(run)

    def _drop_repeated_lines(self, run: Run) -> None:
        file, done = RunDir(run.dir).metrics_file, run.progress
        # By count: lines of the checkpoint's own iteration may come before and after it. There
        # is no count without a checkpoint, or in one of an earlier version.
        # The lines of another run are not in this file.
        if self._lines_at_checkpoint is not None and not run._internals.is_from_other:
            keep_first(file, self._lines_at_checkpoint)
        else:
            drop_after(file, done.iter, validated=done.validated_at == done.iter)
        self._lines_at_checkpoint = None

    def _update_summary(self, run: Run) -> None:
        """Update the summary for other programs; a problem must not stop the numbers."""
        try:
            self._summarize(run, durable=False)
        except OSError as error:
            if not self._is_failing:
                _log.warning("'%s' cannot be written: %s", RunDir(run.dir).summary_file, error)
            self._is_failing = True
        else:
            self._is_failing = False

    def _summarize(self, run: Run, *, durable: bool = True) -> None:
        directory = RunDir(run.dir)
        try:
            old = directory.read_summary()
        except (OSError, ValueError):  # A damaged file is replaced.
            old = {}
        # Who the run is was noted first, by itself.
        has_status = "status" in old
        if has_status and not (
            self._trained or self._evaluated
        ):  # A completed run was only loaded.
            return
        summary = {**_outcome(run), "started": self._started}
        # The time of a trained run does not include later evaluations.
        is_counted = self._trained or not has_status
        seconds = self._watch.seconds if is_counted else self._watch.earlier
        clock = {"seconds": round(seconds, 3), "written": _now()}
        latest, best = run.metrics.all_latest(), cast("object", self._best.all())
        # An evaluation adds its numbers to the summary of the training.
        if not self._trained and has_status:
            summary = {key: old.get(key) for key in (*summary, *({"root"} & old.keys()))}
            best = old.get("best")
            # Not those of the checkpoint, which may be older than the summary.
            latest = {n: v for n, v in latest.items() if n.partition("/")[0] in self._evaluated}
        kept = cast("Mapping[str, float]", old.get("metrics") or {})
        directory.write_summary(
            summary | clock | {"metrics": {**kept, **latest}, "best": best or old.get("best")},
            durable=durable,
        )


def record_disabled(run: Run, *, trains: bool) -> None:
    """Add the hooks that were switched off to the summary; one of them may be `WriteMetrics`."""
    directory = RunDir(run.dir)
    try:
        old = directory.read_summary()
        earlier = [] if trains else cast("list[object]", old.get("disabled") or [])
        current = [asdict(hook) for hook in run._plan.disabled]
        disabled = [*earlier, *(hook for hook in current if hook not in earlier)]
        if disabled != old.get("disabled"):
            outcome = _outcome(run) if trains or not old else {}
            directory.write_summary({**old, **outcome, "disabled": disabled})
    except (OSError, ValueError) as error:
        _log.warning("'%s' cannot be written: %s", directory.summary_file, error)


def _outcome(run: Run) -> dict[str, object]:
    """Return the status of a run, in the form of the summary."""
    outcome, done = run.outcome, run.progress
    return {
        "status": outcome.status,
        "reason": outcome.reason,
        "exit_code": outcome.exit_code,
        "problem": outcome.problem,
        "disabled": [asdict(hook) for hook in run._plan.disabled],
        "ended": _now() if outcome.status != "running" else None,
        "iter": done.iter,
        "epoch": done.epoch,
        "total_iters": done.total_iters,
        "total_epochs": done.max_epochs,
        "samples": done.samples,
        "tokens": done.tokens,
        "batch_size": _batch_size(run),
        "main_metric": _main_metric(run),
        "machine": machine_names(name for hook in run.hooks for name in hook.writes),
        "ranks": run.world.size,
        "changes": run._internals.changes,
        **Identity(run._internals.id, run._internals.parent).as_summary(),
        **({"root": run._internals.root} if run._internals.root is not None else {}),
    }


def _batch_size(run: Run) -> int | None:
    """Return the samples of an iteration, where the loader has a batch size."""
    size = batch_size_of(run.train_data.data) if run.train_data is not None else None
    return size * run.accumulate if isinstance(size, int) else None


def _main_metric(run: Run) -> str | None:
    """Return the metric by which the best checkpoint is chosen."""
    return next(iter(_best_rules(run)), None)


def _best_rules(run: Run) -> dict[str, Rule]:
    """Return the metrics whose best checkpoint is kept, and which values of them are better."""
    rules: dict[str, Rule] = {}
    for hook in run.hooks:
        if isinstance(hook, SaveCheckpoint):
            rules |= {n: rule for n, rule in hook.best_rules.items() if n not in rules}
    return rules


def _now(precision: str = "seconds") -> str:
    return datetime.now(UTC).isoformat(timespec=precision)
