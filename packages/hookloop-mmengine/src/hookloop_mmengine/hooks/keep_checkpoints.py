"""`KeepCheckpoints`: the native hook that requests what `CheckpointHook` describes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from hookloop import Hook, Priority, Save
from hookloop.dialects import internals_of
from hookloop.runs import best_name, checkpoint_name
from hookloop_mmengine.facade import RunnerFacade
from hookloop_mmengine.shared_results import without_phase

if TYPE_CHECKING:
    from hookloop import Run
    from hookloop_mmengine.hooks.checkpoint_hook import CheckpointHook

FACADE = f"{RunnerFacade.__module__}.{RunnerFacade.__qualname__}"


class KeepCheckpoints(Hook):
    """Request the files that MMEngine's hook would leave behind.

    After an improvement a periodic file is saved too, even off the interval. A training that
    counts iterations has one epoch, number 1, which ends with the training.

    Args:
        settings: The hook with the settings.

    Attributes:
        last: The last periodic file of this run.
        best: The best file of each metric, by metric.
    """

    name = "checkpoint_hook"
    priority = Priority.VERY_LOW

    def __init__(self, settings: CheckpointHook) -> None:
        self._settings = settings
        self._scores: dict[str, float] = {}
        self._metrics = [name for name in settings.save_best if name != "auto"]
        self._saved_at = -1
        self.last: str | None = None
        self.best: dict[str, str] = {}

    def state_dict(self) -> dict[str, object]:
        return {"scores": self._scores, "metrics": self._metrics, "best": self.best}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        self._scores = dict(cast("Mapping[str, float]", state["scores"]))
        self._metrics = list(cast("list[str]", state["metrics"]))
        self.best = dict(cast("Mapping[str, str]", state["best"]))

    def stores(self, run_dir: Path) -> Sequence[str]:
        out_dir = self._settings.out_dir
        return () if out_dir is None else (f"{out_dir}/{Path(run_dir).absolute().name}",)

    def after_train_iter(self, run: Run) -> None:
        settings, done = self._settings, run.progress.iter
        if settings.by_epoch:
            return
        if self._is_due(done) or (settings.save_last and done == run.progress.total_iters):
            self._save_periodic(run, done)

    def after_train_epoch(self, run: Run) -> None:
        settings, progress = self._settings, run.progress
        if not settings.by_epoch or progress.max_epochs is None:
            return
        if self._is_due(progress.epoch) or (settings.save_last and progress.is_done):
            self._save_periodic(run, progress.epoch)

    def after_val_epoch(self, run: Run, metrics: Mapping[str, float]) -> None:
        if not self._settings.save_best:
            return
        facade = internals_of(run).shared.get(FACADE)
        # An evaluator may return None for a metric, which our own metrics cannot hold.
        raw = getattr(facade, "raw_metrics", None) or without_phase(metrics, run.phase)
        better = internals_of(run).ranks.share(
            self._update_scores(raw)
        )  # The first rank decides for all.
        # MMEngine writes the periodic file again with the new best score; a file off the interval
        # results.
        if better and run.phase == "val" and self.last is not None:
            self._save_periodic(run, self._number(run))
        for metric in better:
            self._save_best(run, metric)

    def after_train(self, run: Run) -> None:
        settings, progress = self._settings, run.progress
        if settings.by_epoch and progress.max_epochs is None and progress.is_done:
            if self._is_due(1) or settings.save_last:
                self._save_periodic(run, 1)
        elif (settings.save_last or run.is_interrupted) and self._saved_at != progress.iter:
            # Stopped inside an epoch: no epoch has ended that the file could be named after.
            if progress.stage == "inside" and settings.by_epoch:
                self._save(run, checkpoint_name("iter", progress.iter))
            else:
                self._save_periodic(run, self._number(run))

    def _is_due(self, count: int) -> bool:
        interval, begin = self._settings.interval, self._settings.save_begin
        return interval > 0 and count >= begin and (count - begin) % interval == 0

    def _number(self, run: Run) -> int:
        if not self._settings.by_epoch:
            return run.progress.iter
        # MMEngine's epoch stays 0 here, so its best file is best_..._epoch_0.pth.
        return 0 if run.progress.max_epochs is None else run.progress.epoch

    def _update_scores(self, metrics: Mapping[str, object]) -> list[str]:
        """Store the scores that are the best so far; return the names of their metrics."""
        # `auto`: the first metric of the first validation that has any, from then on.
        if not self._metrics and metrics:
            self._metrics = [next(iter(metrics))]
        better = []
        for metric in self._metrics if metrics else ():
            if metric not in metrics:
                raise KeyError(f"save_best: {metric} is not in the metrics: {', '.join(metrics)}")
            # MMEngine skips None, which evaluators return when nothing could be computed.
            if metrics[metric] is None:
                continue
            value = float(cast("float", metrics[metric]))
            greater = self._settings.rule_of(metric) == "greater"
            best = self._scores.get(metric, -math.inf if greater else math.inf)
            # Strict, and written so that NaN is never better.
            if value > best if greater else value < best:
                self._scores[metric] = value
                better.append(metric)
        return better

    def _save_periodic(self, run: Run, number: int) -> None:
        self._save(run, self._settings.filename_tmpl.format(number))

    def _save(self, run: Run, name: str) -> None:
        settings = self._settings
        # The interval, the end and an improvement may ask for the same file.
        if self._saved_at == run.progress.iter and self.last == name:
            return
        self._saved_at, self.last = run.progress.iter, name
        keep = settings.max_keep_ckpts if settings.max_keep_ckpts > 0 else None
        parts = (
            ("optimizers", settings.save_optimizer),
            ("schedules", settings.save_param_scheduler),
        )
        leave_out = tuple(part for part, is_saved in parts if not is_saved)
        save = Save(name, self.directory(run), "periodic", self.name, keep, leave_out=leave_out)
        run.save(save, everywhere=True)  # It follows from counters that all ranks share.
        self._put_info(run, "last_ckpt", name)

    def _save_best(self, run: Run, metric: str) -> None:
        number = self._settings.filename_tmpl.format(self._number(run))
        name = best_name(metric, number)
        self.best[metric] = name
        # The best file can then be a copy of the periodic one, which is written once only.
        of = self.last if self._saved_at == run.progress.iter else None
        score = {metric: self._scores[metric]}
        owner = f"{self.name}/{metric}"
        save = Save(name, self.directory(run), "best", owner, keep=1, of=of, metrics=score)
        run.save(save, everywhere=True)
        suffix = "" if len(self._metrics) == 1 else f"_{metric}"
        self._put_info(run, f"best_score{suffix}", self._scores[metric])
        self._put_info(run, f"best_ckpt{suffix}", name)

    def directory(self, run: Run) -> str | None:
        """Return the directory of the files; None for that of the run."""
        return next(iter(self.stores(run.dir)), None)

    def _put_info(self, run: Run, key: str, value: object) -> None:
        facade = internals_of(run).shared.get(FACADE)
        if isinstance(facade, RunnerFacade):
            facade.message_hub.update_info(key, value)
