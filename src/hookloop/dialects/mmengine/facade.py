"""`RunnerFacade`: the run as MMEngine's hooks see it, with MMEngine's counters.

``runner.iter`` and ``runner.epoch`` are indices, 0 at first, which move after the sweep of
``after_train_iter`` and ``after_train_epoch``: in there they are one behind our counters of
completed things. The adapter says so through `at_iter` and `at_epoch`.
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
from hookloop.dialects.mmengine.loops import TestLoop, TrainLoopView, ValLoop, train_loop_of
from hookloop.trainer.adapters import adapt_all

if TYPE_CHECKING:
    import torch

    from hookloop.core.run import Run
    from hookloop.data.source import Source

_log = logging.getLogger("hookloop")


class RunnerFacade(Facade):
    """What an MMEngine hook gets as ``runner``.

    Args:
        run: The run.

    Attributes:
        at_iter: 1 while ``after_train_iter`` is swept, else 0.
        at_epoch: The same for ``after_train_epoch``.
        keeper: The adapter in whose state the message hub is kept: the first of the run.
        raw_metrics: What an evaluator returned, before it was brought to numbers.
    """

    role = "runner"
    hints: ClassVar[Mapping[str, str]] = {
        "optimizer": "runner.optim_wrapper.optimizer",
        "data_batch": "the argument data_batch of the hook's method",
        "outputs": "the argument outputs of the hook's method",
        "inner_iter": "the argument batch_idx of the hook's method",
        "log_buffer": "runner.message_hub",
        "meta": "runner.message_hub.get_info(...)",
        "mode": "Hook._before_iter(..., mode=...)",
        "train": "Trainer.train(), outside of hooks",
        "val": "run.validate(), which asks for a validation after this iteration",
        "test": "Trainer.test(), outside of hooks",
        "load_checkpoint": "Trainer(load_from=...)",
        "resume": "Trainer(resume=...)",
        "build_model": "a model object",
    }

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._begin_facade()

    def _begin_facade(self) -> None:
        self.at_iter = self.at_epoch = 0
        self.keeper: str | None = None
        self.raw_metrics: Mapping[str, object] | None = None
        self._resume = False

    # --- counters

    @property
    def is_iter_based(self) -> bool:
        """Whether the training counts iterations only; ``epoch`` then stays 0."""
        return self.run.progress.max_epochs is None

    @property
    def iter(self) -> int:
        """Index of the iteration; iterations done at all other points."""
        return self.run.progress.iter - self.at_iter

    @property
    def epoch(self) -> int:
        """Index of the epoch; epochs done in a validation."""
        return 0 if self.is_iter_based else self.run.progress.epoch - self.at_epoch

    @property
    def max_epochs(self) -> int:
        """Epochs to train; 1 when iterations are counted."""
        return self.run.progress.max_epochs or 1

    @property
    def max_iters(self) -> int:
        """Iterations to train."""
        return self.run.progress.total_iters or 0

    # --- what is trained

    @property
    def model(self) -> torch.nn.Module:
        """The model; another one may be put in its place."""
        return self.run.model

    @model.setter
    def model(self, model: torch.nn.Module) -> None:
        self.run.model = model

    @cached_property
    def optim_wrapper(self) -> object:
        """The optimizer, wrapped."""
        from hookloop.dialects.mmengine.optim import OptimWrapper, OptimWrapperDict

        wrapped = {name: OptimWrapper(one) for name, one in self.run.optimizers.items()}
        for one in wrapped.values():
            one.base_param_settings = None  # The run's schedules do not know it.
        return next(iter(wrapped.values())) if len(wrapped) == 1 else OptimWrapperDict(**wrapped)

    @property
    def param_schedulers(self) -> list[object]:
        """The schedulers."""
        return [schedule.scheduler for schedule in self.run.schedules.values()]

    @cached_property
    def train_loop(self) -> TrainLoopView:
        """The training."""
        return train_loop_of(self, self.train_dataloader)

    @cached_property
    def val_loop(self) -> ValLoop | None:
        """The validation, if there is one."""
        data = self.val_dataloader
        return None if data is None else ValLoop(self, data)

    @cached_property
    def test_loop(self) -> TestLoop | None:
        """The test, if there is one."""
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
        """The validation data, of the first stream."""
        return _first(self.run.val_data)

    @property
    def test_dataloader(self) -> object:
        """The test data, of the first stream."""
        return _first(self.run.test_data)

    # --- where and who

    @property
    def work_dir(self) -> str:
        """The run's directory."""
        return str(self.run.dir)

    @property
    def log_dir(self) -> str:
        """Where logs go."""
        return str(Path(self.work_dir) / self.timestamp)

    _log_dir = log_dir

    @cached_property
    def timestamp(self) -> str:
        """When the run began."""
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
        """What the random numbers began with."""
        return self.run.seed

    @property
    def rank(self) -> int:
        """Of this process."""
        return self.run.world.rank

    @property
    def world_size(self) -> int:
        """Number of processes."""
        return self.run.world.size

    @property
    def distributed(self) -> bool:
        """Whether there are several processes."""
        return self.run.world.size > 1

    # --- what hooks share

    @cached_property
    def message_hub(self) -> MessageHub:
        """What hooks tell each other."""
        return MessageHub.new_instance(self.experiment_name)

    @property
    def logger(self) -> logging.Logger:
        """Where to say something."""
        return _log

    @cached_property
    def visualizer(self) -> object:
        """Where numbers and pictures go; what it gets is written by hookloop's writers."""
        from hookloop.dialects.mmengine.visualization import EmittingVisualizer

        return EmittingVisualizer(self.run)

    @cached_property
    def log_processor(self) -> object:
        """Makes lines of the log."""
        from hookloop.dialects.mmengine.runner.log_processor import LogProcessor

        return LogProcessor(by_epoch=not self.is_iter_based)

    # --- hooks

    @property
    def hooks(self) -> list[object]:
        """The hooks in their order, as their authors wrote them."""
        return [one.foreign if isinstance(one, Adapter) else one for one in self.run.hooks]

    _hooks = hooks

    def register_hook(self, hook: object, priority: int | str | None = None) -> None:
        """Add a hook to the run under way."""
        from hookloop.dialects.mmengine.registry import HOOKS

        made = HOOKS.build(hook) if isinstance(hook, Mapping) else hook
        if priority is not None:
            made.priority = priority  # type: ignore[attr-defined]
        taken = {one.name for one in self.run.hooks}
        ours = adapt_all([made])
        for one in ours:
            if one.name in taken:
                one.named(f"{one.name}_{len(taken) + 1}")
        self.run.plan.add(*ours)
        for one in ours:
            if isinstance(one, Adapter):
                one.bind_facade(self.run)

    def call_hook(self, fn_name: str, **kwargs: object) -> None:
        """Call a method of every MMEngine hook that has it, in the hooks' order."""
        for one in self.run.hooks:
            method = getattr(one.foreign, fn_name, None) if isinstance(one, Adapter) else None
            if callable(method):
                self.hook = one.name
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
        """Ask for a checkpoint; it is written at the next safe place."""
        kept = (("optimizers", save_optimizer), ("schedules", save_param_scheduler))
        leave_out = tuple(part for part, wanted in kept if not wanted)
        place = None if Path(out_dir) == self.run.dir else str(out_dir)
        self.run.save(Save(filename, place, owner=self.hook, leave_out=leave_out))


def _first(streams: Mapping[str, Source]) -> object:
    return cast("object", next(iter(streams.values())).data) if streams else None
