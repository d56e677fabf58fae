"""`EvaluateHook`: evaluate the model and keep the best checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from hookloop import Save
from hookloop.dialects import (
    append,
    internals_of,
    to_json,
)
from hookloop_dialects.imix.engine.hooks.base_hook import HookBase


class EvaluateHook(HookBase):
    """Call an evaluation function, write the metrics, and keep the best checkpoint.

    It evaluates after each epoch and, with a period, within epochs. A training by iteration is
    evaluated at the period and at its end. Larger is better; ties are decided by the next metric.
    The best is saved as ``best_result.pth``, its weights alone as ``model_best.pth``.

    Args:
        eval_function: Returns the metrics.
        eval_iter_period: Iterations between two evaluations; None for none within an epoch.
        is_run_eval: Whether to evaluate at all.
        eval_json_file: File to which each evaluation appends a line.
    """

    def __init__(
        self,
        eval_function: Callable[[], Mapping[str, float] | None],
        eval_iter_period: int | None = None,
        is_run_eval: bool = True,
        eval_json_file: str = "eval_result.json",
    ) -> None:
        super().__init__()
        self._function = eval_function
        self._period = eval_iter_period
        self._is_run_eval = is_run_eval
        self._file_name = eval_json_file
        self.best: tuple[float, ...] | None = None

    def state_dict(self) -> dict[str, object]:
        return {"best": None if self.best is None else list(self.best)}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        best = state["best"]
        self.best = tuple(best) if isinstance(best, list) else None

    def after_train_epoch(self) -> None:
        if self._is_run_eval:
            self._evaluate()

    def after_train_iter(self) -> None:
        trainer = self.trainer
        if not self._is_run_eval or not self._period:
            return
        done = trainer.iter + 1
        # The end of an epoch has its own evaluation. By iteration there are no epochs, so the end
        # of the run needs one.
        is_epoch_end = (
            trainer.by_epoch and trainer.inner_iter + 1 == trainer.run.progress.epoch_iters
        )
        is_end = not trainer.by_epoch and done == trainer.max_iter
        if is_end or (done % self._period == 0 and not is_epoch_end):
            self._evaluate()

    def _evaluate(self) -> None:
        trainer = self.trainer
        # The function usually switches the model to evaluation and may not switch it back.
        training = trainer.model.training
        metrics = dict(self._function() or {})
        trainer.model.train(training)
        line = {
            "iter": trainer.iter,
            "max_iter": trainer.max_iter,
            "epoch": trainer.epoch,
            "max_epoch": trainer.max_epoch,
            **metrics,
            "model_name": type(trainer.model).__name__,
        }
        if trainer.run.world.is_main:
            append(Path(trainer.work_dir) / self._file_name, to_json(line) + "\n")
        for name, value in metrics.items():
            # Not smoothed: a median over evaluations would hide the newest.
            trainer.log_buffer.put_scalar(name, value, smoothing_hint=False)
        # That of the first rank, so that all keep the same one.
        score = internals_of(trainer.run).ranks.share(
            tuple(float(value) for value in metrics.values())
        )
        if score and (self.best is None or score > self.best):
            self.best = score
            self._keep()

    def _keep(self) -> None:
        run, owner = self.trainer.run, self.trainer.hook
        run.save(Save("best_result.pth", kind="best", owner=owner), everywhere=True)
        # iMIX pickles the model of the last epoch here, which is not the best and runs code when
        # it is loaded.
        others = ("optimizers", "schedules", "scaler", "data", "metrics", "hooks", "rng")
        best = Save("model_best.pth", kind="best", owner=owner, leave_out=others)
        run.save(best, everywhere=True)
