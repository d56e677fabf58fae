"""`RunnerFacade`: the run as MMEngine's hooks see it, with MMEngine's counters.

``runner.iter`` and ``runner.epoch`` start at 0 and are incremented after the sweeps of
``after_train_iter`` and ``after_train_epoch``. Inside these sweeps they are one behind our counters
of completed iterations and epochs; the adapter sets `at_iter` and `at_epoch` there.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from hookloop.checkpoint.request import Save
from hookloop.dialects.adapter import Adapter, Facade
from hookloop.dialects.mmengine.logging import MessageHub
from hookloop.dialects.mmengine.loops import TestLoop, TrainLoopView, ValLoop, make_train_loop
from hookloop.dialects.mmengine.model.wrappers import unwrapped, view_of
from hookloop.trainer.adapters import adapt_all

if TYPE_CHECKING:
    import torch

    from hookloop.core.run import Run
    from hookloop.data.source import Source

_log = logging.getLogger("hookloop")

# Attributes of older MMCV runners and of MMEngine's own that have no counterpart here.
_HINTS = {
    "optimizer": "runner.optim_wrapper.optimizer",
    "data_batch": "the argument data_batch of the hook's method",
    "outputs": "the argument outputs of the hook's method",
    "inner_iter": "the argument batch_idx of the hook's method",
    "log_buffer": "runner.message_hub",
    "meta": "runner.message_hub.get_info(...)",
    "mode": "Hook._before_iter(..., mode=...)",
    "train": "Trainer.train(), outside of hooks",
    "val": "run.validate(), which requests a validation after this iteration",
    "test": "Trainer.test(), outside of hooks",
    "load_checkpoint": "Trainer(load_from=...)",
    "resume": "Trainer(resume=...)",
    "build_model": "a model object",
}


class RunnerFacade(Facade):
    """The object that an MMEngine hook gets as ``runner``.

    Args:
        run: The run.

    Attributes:
        at_iter: 1 during the sweep of ``after_train_iter``, else 0.
        at_epoch: The same for ``after_train_epoch``.
        keeper: The name of the adapter that saves the message hub: the first one of the run.
        raw_metrics: The metrics of an evaluator before they were reduced to numbers.
    """

    role = "runner"
    hints: ClassVar[Mapping[str, str]] = _HINTS

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._begin_facade()

    def _begin_facade(self) -> None:
        self.at_iter = self.at_epoch = 0
        self.keeper: str | None = None
        self.raw_metrics: Mapping[str, object] | None = None
        self._resume = False
        self._view: object = None

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
        from hookloop.dialects.mmengine.optim import OptimWrapper, OptimWrapperDict

        wrappers = {name: OptimWrapper(found) for name, found in self.run.optimizers.items()}
        for wrapper in wrappers.values():
            wrapper.base_param_settings = None  # The run's own schedules would not change it.
        return next(iter(wrappers.values())) if len(wrappers) == 1 else OptimWrapperDict(**wrappers)

    @property
    def param_schedulers(self) -> list[object]:
        """The parameter schedulers."""
        return [schedule.scheduler for schedule in self.run.schedules.values()]

    @cached_property
    def train_loop(self) -> TrainLoopView:
        """The train loop."""
        return make_train_loop(self, self.train_dataloader)

    @cached_property
    def val_loop(self) -> ValLoop | None:
        """The validation loop, if there is one."""
        data = self.val_dataloader
        return None if data is None else ValLoop(self, data)

    @cached_property
    def test_loop(self) -> TestLoop | None:
        """The test loop, if there is one."""
        data = self.test_dataloader
        return None if data is None else TestLoop(self, data)

    @property
    def _train_loop(self) -> TrainLoopView:
        return self.train_loop

    @property
    def train_dataloader(self) -> object:
        """The training data."""
        return self.run.train_data.data if self.run.train_data is not None else None

    @property
    def val_dataloader(self) -> object:
        """The validation data; of several streams, the first."""
        return _first(self.run.val_data)

    @property
    def test_dataloader(self) -> object:
        """The test data; of several streams, the first."""
        return _first(self.run.test_data)

    # --- the run and its processes

    @property
    def work_dir(self) -> str:
        """The run's directory."""
        return str(self.run.dir)

    @property
    def log_dir(self) -> str:
        """The directory of the log files."""
        return str(Path(self.work_dir) / self.timestamp)

    # Hooks of other projects read the private names as well.
    _log_dir = log_dir

    @cached_property
    def timestamp(self) -> str:
        """The time at which this was first asked for."""
        return time.strftime("%Y%m%d_%H%M%S")

    @cached_property
    def experiment_name(self) -> str:
        """The run's name."""
        return f"{self.run.dir.name}_{self.timestamp}"

    @cached_property
    def cfg(self) -> object:
        """The effective config."""
        from hookloop.dialects.mmengine.config import Config

        return Config(dict(self.run.config))

    @property
    def seed(self) -> int | None:
        """The seed of the random numbers."""
        return self.run.seed

    @property
    def rank(self) -> int:
        """The rank of this process."""
        return self.run.world.rank

    @property
    def world_size(self) -> int:
        """The number of processes."""
        return self.run.world.size

    @property
    def distributed(self) -> bool:
        """Whether there are several processes."""
        return self.run.world.size > 1

    # --- what hooks share

    @cached_property
    def message_hub(self) -> MessageHub:
        """The values that hooks share."""
        # A new hub: one of this name would hold the values of an earlier run in this process.
        return MessageHub.new_instance(self.experiment_name)

    @property
    def logger(self) -> logging.Logger:
        """The logger of the run."""
        return _log

    @cached_property
    def visualizer(self) -> object:
        """A visualizer that passes numbers and images to hookloop's writers."""
        from hookloop.dialects.mmengine.visualization import EmittingVisualizer

        return EmittingVisualizer(self.run)

    @cached_property
    def log_processor(self) -> object:
        """The formatter of log lines."""
        from hookloop.dialects.mmengine.runner.log_processor import LogProcessor

        # MMEngine's default counts epochs always, which shows wrong numbers for iterations.
        return LogProcessor(by_epoch=not self.is_iter_based)

    # --- hooks

    @property
    def hooks(self) -> list[object]:
        """The hooks in their order; adapted hooks are shown as their authors wrote them."""
        return [hook.foreign if isinstance(hook, Adapter) else hook for hook in self.run.hooks]

    # Hooks of other projects read the private list as well.
    _hooks = hooks

    def register_hook(self, hook: object, priority: int | str | None = None) -> None:
        """Add a hook to the current run."""
        from hookloop.dialects.mmengine.registry import HOOKS

        built = HOOKS.build(hook) if isinstance(hook, Mapping) else hook
        if priority is not None:
            built.priority = priority  # type: ignore[attr-defined]
        names = {present.name for present in self.run.hooks}
        added = adapt_all([built])
        for native in added:
            if native.name in names:
                native.named(f"{native.name}_{len(names) + 1}")
        self.run.plan.add(*added)
        for native in added:
            if isinstance(native, Adapter):
                native.bind_facade(self.run)  # before_run, which usually does this, is over.

    def call_hook(self, fn_name: str, **kwargs: object) -> None:
        """Call a method of every MMEngine hook that has it, in the order of the hooks."""
        for hook in self.run.hooks:
            method = getattr(hook.foreign, fn_name, None) if isinstance(hook, Adapter) else None
            if callable(method):
                self.hook = hook.name
                method(self, **kwargs)

    def save_checkpoint(  # noqa: PLR0913, PLR0917 - MMEngine's signature
        self,
        out_dir: str,
        filename: str,
        file_client_args: object = None,
        save_optimizer: bool = True,
        save_param_scheduler: bool = True,
        meta: Mapping[str, object] | None = None,
        by_epoch: bool = True,
        backend_args: object = None,
    ) -> None:
        """Request a checkpoint; it is written at the next safe point."""
        parts = (("optimizers", save_optimizer), ("schedules", save_param_scheduler))
        leave_out = tuple(part for part, is_saved in parts if not is_saved)
        # None is the run's own directory, for which the store is already open.
        directory = None if Path(out_dir) == self.run.dir else str(out_dir)
        self.run.save(Save(filename, directory, owner=self.hook, leave_out=leave_out))


def _first(streams: Mapping[str, Source]) -> object:
    return cast("object", next(iter(streams.values())).data) if streams else None
