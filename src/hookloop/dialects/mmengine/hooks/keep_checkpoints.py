"""`KeepCheckpoints`: what `CheckpointHook` asks of the engine."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from hookloop.checkpoint.request import Save
from hookloop.core.hook import Hook, Priority
from hookloop.dialects.mmengine.facade import RunnerFacade
from hookloop.metrics.results import without_phase

if TYPE_CHECKING:
    from hookloop.core.run import Run
    from hookloop.dialects.mmengine.hooks.checkpoint_hook import CheckpointHook

FACADE = f"{RunnerFacade.__module__}.{RunnerFacade.__qualname__}"


class KeepCheckpoints(Hook):
    """Ask for the files that MMEngine's hook would leave.

    After the best has improved, a periodic file is saved too, even off the interval. Iterations
    that are not counted by epochs have one epoch, number 1, at the end.

    Args:
        said: The settings.

    Attributes:
        last: The last periodic file of this run.
        best: The best file of each metric.
    """

    name = "checkpoint_hook"
    priority = Priority.VERY_LOW

    def __init__(self, said: CheckpointHook) -> None:
        self._said = said
        self._scores: dict[str, float] = {}
        self._metrics = [name for name in said.save_best if name != "auto"]
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
        out_dir = self._said.out_dir
        return () if out_dir is None else (f"{out_dir}/{Path(run_dir).absolute().name}",)

    def after_train_iter(self, run: Run) -> None:
        said, done = self._said, run.progress.iter
        if said.by_epoch:
            return
        if self._is_due(done) or (said.save_last and done == run.progress.total_iters):
            self._ask(run, done)

    def after_train_epoch(self, run: Run) -> None:
        said, progress = self._said, run.progress
        if not said.by_epoch or progress.max_epochs is None:
            return
        if self._is_due(progress.epoch) or (said.save_last and progress.is_done):
            self._ask(run, progress.epoch)

    def after_val_epoch(self, run: Run, metrics: Mapping[str, float]) -> None:
        if not self._said.save_best:
            return
        facade = run.facades.get(FACADE)
        raw = getattr(facade, "raw_metrics", None) or without_phase(metrics, run.phase)
        better = self._improved(raw)
        if better and run.phase == "val" and self.last is not None:
            self._ask(run, self._number(run))
        for metric in better:
            self._ask_best(run, metric)

    def after_train(self, run: Run) -> None:
        said, progress = self._said, run.progress
        if said.by_epoch and progress.max_epochs is None and progress.is_done:
            if self._is_due(1) or said.save_last:
                self._ask(run, 1)
        elif (said.save_last or run.is_interrupted) and self._saved_at != progress.iter:
            if progress.stage == "inside" and said.by_epoch:
                self._save(run, f"iter_{progress.iter}.pth")
            else:
                self._ask(run, self._number(run))

    def _is_due(self, count: int) -> bool:
        interval, begin = self._said.interval, self._said.save_begin
        return interval > 0 and count >= begin and (count - begin) % interval == 0

    def _number(self, run: Run) -> int:
        if not self._said.by_epoch:
            return run.progress.iter
        return 0 if run.progress.max_epochs is None else run.progress.epoch

    def _improved(self, metrics: Mapping[str, object]) -> list[str]:
        """Return the metrics that are better than ever."""
        if not self._metrics and metrics:
            self._metrics = [next(iter(metrics))]
        better = []
        for metric in self._metrics if metrics else ():
            if metric not in metrics:
                raise KeyError(f"save_best: {metric} is not in the metrics: {', '.join(metrics)}")
            if metrics[metric] is None:
                continue
            value = float(cast("float", metrics[metric]))
            greater = self._said.rule_of(metric) == "greater"
            best = self._scores.get(metric, -math.inf if greater else math.inf)
            if value > best if greater else value < best:
                self._scores[metric] = value
                better.append(metric)
        return better

    def _ask(self, run: Run, number: int) -> None:
        self._save(run, self._said.filename_tmpl.format(number))

    def _save(self, run: Run, name: str) -> None:
        said = self._said
        if self._saved_at == run.progress.iter and self.last == name:
            return
        self._saved_at, self.last = run.progress.iter, name
        keep = said.max_keep_ckpts if said.max_keep_ckpts > 0 else None
        kept = (("optimizers", said.save_optimizer), ("schedules", said.save_param_scheduler))
        leave_out = tuple(part for part, wanted in kept if not wanted)
        run.save(Save(name, self.place(run), "periodic", self.name, keep, leave_out=leave_out))
        self._tell(run, "last_ckpt", name)

    def _ask_best(self, run: Run, metric: str) -> None:
        number = self._said.filename_tmpl.format(self._number(run))
        name = f"best_{metric.replace('/', '_')}_{number}"
        self.best[metric] = name
        of = self.last if self._saved_at == run.progress.iter else None
        score = {metric: self._scores[metric]}
        owner = f"{self.name}/{metric}"
        run.save(Save(name, self.place(run), "best", owner, keep=1, of=of, metrics=score))
        suffix = "" if len(self._metrics) == 1 else f"_{metric}"
        self._tell(run, f"best_score{suffix}", self._scores[metric])
        self._tell(run, f"best_ckpt{suffix}", name)

    def place(self, run: Run) -> str | None:
        return next(iter(self.stores(run.dir)), None)

    def _tell(self, run: Run, key: str, value: object) -> None:
        facade = run.facades.get(FACADE)
        if isinstance(facade, RunnerFacade):
            facade.message_hub.update_info(key, value)
