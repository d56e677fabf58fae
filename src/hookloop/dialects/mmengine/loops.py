"""What a hook sees as ``runner.train_loop``, ``runner.val_loop`` and ``runner.test_loop``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookloop.core.hook import FunctionHook
from hookloop.core.priority import Priority

if TYPE_CHECKING:
    from hookloop.core.run import Run
    from hookloop.dialects.mmengine.facade import RunnerFacade

STOP = "mmengine_stop"


class LoopView:
    """One of the three loops, as far as hooks look at them."""

    def __init__(self, runner: RunnerFacade, data: object) -> None:
        self.runner = runner
        self.dataloader = data

    @property
    def dataset(self) -> object:
        """The data set behind the loader."""
        return getattr(self.dataloader, "dataset", self.dataloader)


class EvaluationLoopView(LoopView):
    """The validation or the test."""

    def __init__(self, runner: RunnerFacade, data: object, evaluator: object = None) -> None:
        super().__init__(runner, data)
        self.evaluator = evaluator


class TrainLoopView(LoopView):
    """The training: its counters, and the wish to stop it."""

    def __init__(self, runner: RunnerFacade, data: object) -> None:
        super().__init__(runner, data)
        self._stops = False
        self.val_interval = 1
        self.val_begin = 1

    @property
    def epoch(self) -> int:
        """As the runner counts."""
        return self.runner.epoch

    @property
    def iter(self) -> int:
        """As the runner counts."""
        return self.runner.iter

    @property
    def max_epochs(self) -> int:
        """As the runner counts."""
        return self.runner.max_epochs

    @property
    def max_iters(self) -> int:
        """As the runner counts."""
        return self.runner.max_iters

    _epoch, _iter, _max_epochs, _max_iters = epoch, iter, max_epochs, max_iters

    @property
    def stop_training(self) -> bool:
        """Whether a hook asked for the end."""
        return self._stops

    @stop_training.setter
    def stop_training(self, wanted: bool) -> None:
        """Ask for the end: after this epoch, or after this iteration if those are counted."""
        if not wanted or self._stops:
            return
        self._stops = True
        run, hook = self.runner.run, self.runner.hook
        reason = f"'{hook}' has set runner.train_loop.stop_training"
        if self.runner.is_iter_based or run.progress.stage != "inside":
            run.stop(reason)
            return

        def stop_after_epoch(run: Run) -> None:
            run.stop(reason)

        last = FunctionHook(stop_after_epoch, "after_train_epoch", priority=Priority.LOWEST)
        run.plan.add(last.named(STOP))


class EpochBasedTrainLoop(TrainLoopView):
    """A training that counts epochs."""


class IterBasedTrainLoop(TrainLoopView):
    """A training that counts iterations only."""


class ValLoop(EvaluationLoopView):
    """A validation."""


class TestLoop(EvaluationLoopView):
    """A test."""


def train_loop_of(runner: RunnerFacade, data: object) -> TrainLoopView:
    """Return the view of a kind that hooks can ask for with ``isinstance``."""
    kind = IterBasedTrainLoop if runner.is_iter_based else EpochBasedTrainLoop
    return kind(runner, data)
