"""`RunnerParts`: the counters, model, optimizers and data that MMEngine's hooks find at the runner.

``runner.iter`` and ``runner.epoch`` start at 0 and are incremented after the sweeps of
``after_train_iter`` and ``after_train_epoch``. Inside these sweeps they are one behind our counters
of completed iterations and epochs; the adapter sets `at_iter` and `at_epoch` there.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Literal, cast

from hookloop.dialects import (
    Facade,
    internals_of,
)
from hookloop.hooks import StepSchedules
from hookloop_mmengine.loops import (
    LoopView,
    TestLoop,
    TrainLoopView,
    ValLoop,
    make_train_loop,
)
from hookloop_mmengine.model.wrappers import unwrapped, view_of
from hookloop_mmengine.native_evaluator import NativeEvaluator

if TYPE_CHECKING:
    import torch

    from hookloop import Schedule
    from hookloop.dialects import Stream
    from hookloop_mmengine.facade import RunnerFacade


class SchedulerView:
    """A scheduler of torch with what MMEngine's have besides.

    Args:
        schedule: The scheduler, and when it is stepped.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.scheduler = schedule.scheduler
        self.by_epoch = not schedule.counts("iters")
        self.need_val_args = schedule.metric is not None

    def __getattr__(self, name: str) -> object:
        if name.startswith("__") or "scheduler" not in self.__dict__:
            raise AttributeError(name)
        # MMEngine counts steps where torch counts epochs.
        return getattr(self.scheduler, "last_epoch" if name == "last_step" else name)


class RunnerParts(Facade):
    """The part of the runner's facade that shows what the run consists of.

    Attributes:
        at_iter: 1 during the sweep of ``after_train_iter``, else 0.
        at_epoch: The same for ``after_train_epoch``.
    """

    at_iter = 0
    at_epoch = 0
    _view: object = None

    # --- counters

    @property
    def is_iter_based(self) -> bool:
        """Whether the training counts iterations only; ``epoch`` then stays 0."""
        return self.run.progress.max_epochs is None

    @property
    def iter(self) -> int:
        """The index of the iteration; outside of iterations, the number of completed ones."""
        return self.run.progress.iter - self.at_iter

    @property
    def epoch(self) -> int:
        """The index of the epoch; in a validation, the number of completed ones."""
        # MMEngine leaves the epoch at 0 forever when it counts iterations.
        return 0 if self.is_iter_based else self.run.progress.epoch - self.at_epoch

    @property
    def max_epochs(self) -> int:
        """The number of epochs to train; 1 if iterations are counted."""
        return self.run.progress.max_epochs or 1

    @property
    def max_iters(self) -> int:
        """The number of iterations to train."""
        return self.run.progress.total_iters or 0

    # --- model, optimizers and data

    @property
    def model(self) -> torch.nn.Module:
        """The model, on several processes with itself as ``module``; hooks may replace it."""
        return self._view_of(self.run.model)

    @model.setter
    def model(self, model: torch.nn.Module) -> None:
        self.run.model = unwrapped(model)

    def _view_of(self, model: torch.nn.Module) -> torch.nn.Module:
        if self.distributed:
            self._view = model = view_of(model, self._view)
        return model

    @cached_property
    def optim_wrapper(self) -> object:
        """The wrapped optimizer, or all of them by name."""
        from hookloop_mmengine.optim import AmpOptimWrapper, OptimWrapper, OptimWrapperDict

        wrappers: Mapping[str, OptimWrapper]
        scaler = internals_of(self.run).scaler
        if scaler is not None:
            amp = {n: AmpOptimWrapper(optimizer=one) for n, one in self.run.optimizers.items()}
            for scaled in amp.values():
                scaled.loss_scaler = scaler
            wrappers = amp
        else:
            wrappers = {name: OptimWrapper(one) for name, one in self.run.optimizers.items()}
        for wrapper in wrappers.values():
            wrapper.base_param_settings = None  # The run's own schedules would not change it.
        return next(iter(wrappers.values())) if len(wrappers) == 1 else OptimWrapperDict(**wrappers)

    @property
    def param_schedulers(self) -> object:
        """The parameter schedulers; hooks may replace them."""
        return [
            one.scheduler if hasattr(one.scheduler, "by_epoch") else SchedulerView(one)
            for one in self.run.schedules.values()
        ]

    @param_schedulers.setter
    def param_schedulers(self, schedulers: object) -> None:
        from hookloop_mmengine.runner.parts import as_schedules, listed_schedulers

        self.run.schedules.clear()
        self.run.schedules.update(as_schedules(listed_schedulers(schedulers)))
        for hook in self.run.hooks:
            if isinstance(hook, StepSchedules):
                hook.before_train(self.run)  # It looks them up there, once.

    @cached_property
    def train_loop(self) -> TrainLoopView:
        """The train loop."""
        source = self.run.train_data
        data = source.data if source is not None else None
        return make_train_loop(cast("RunnerFacade", self), data)

    @cached_property
    def val_loop(self) -> ValLoop | None:
        """The validation loop, if there is one."""
        data = _first(self.run.val_data)
        return (
            None if data is None else ValLoop(cast("RunnerFacade", self), data, self.val_evaluator)
        )

    @cached_property
    def test_loop(self) -> TestLoop | None:
        """The test loop, if there is one."""
        data = _first(internals_of(self.run).test_data)
        return (
            None
            if data is None
            else TestLoop(cast("RunnerFacade", self), data, self.test_evaluator)
        )

    @cached_property
    def val_evaluator(self) -> object:
        """The metrics of the validation."""
        return self._make_evaluator("val")

    @cached_property
    def test_evaluator(self) -> object:
        """The metrics of the test."""
        return self._make_evaluator("test")

    def _make_evaluator(self, phase: Literal["val", "test"]) -> object:
        return NativeEvaluator(self.run, phase)

    @property
    def val_interval(self) -> int:
        """Epochs or iterations between two validations."""
        return self.train_loop.val_interval

    @property
    def val_begin(self) -> int:
        """The first epoch or iteration that is validated."""
        return self.train_loop.val_begin

    @property
    def model_name(self) -> str:
        """The name of the model's class."""
        return type(self.run.model).__name__

    @property
    def _train_loop(self) -> TrainLoopView | None:
        # None where nothing is trained, which hooks of other projects ask for.
        return self.train_loop if self.run.train_data is not None else None

    @property
    def train_dataloader(self) -> object:
        """The training data."""
        source = self.run.train_data
        return self.train_loop.show(source.data) if source is not None else None

    @property
    def val_dataloader(self) -> object:
        """The validation data; of several streams, the first."""
        return _shown(self.val_loop, self.run.val_data)

    @property
    def test_dataloader(self) -> object:
        """The test data; of several streams, the first."""
        return _shown(self.test_loop, internals_of(self.run).test_data)

    @property
    def distributed(self) -> bool:
        """Whether there are several processes."""
        return self.run.world.size > 1


def _shown(loop: LoopView | None, streams: Mapping[str, Stream]) -> object:
    return loop.show(_first(streams)) if loop is not None else None


def _first(streams: Mapping[str, Stream]) -> object:
    return cast("object", next(iter(streams.values())).data) if streams else None
