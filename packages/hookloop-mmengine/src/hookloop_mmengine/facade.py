"""`RunnerFacade`: the run as MMEngine's hooks see it."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from hookloop import Save
from hookloop.dialects import Adapter, adapt_all, internals_of, plan_of
from hookloop_mmengine.facade_parts import RunnerParts
from hookloop_mmengine.hub_filling import begin_filling, is_mentioned
from hookloop_mmengine.logging import MessageHub
from hookloop_mmengine.shared_results import HubRecorder

if TYPE_CHECKING:
    from hookloop import Run


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
    "resume": "Trainer(resume=...)",
    "build_model": "a model object",
}


class RunnerFacade(RunnerParts):
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
    loggers = ("mmengine",)
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
        from hookloop_mmengine.config import Config

        return Config(dict(self.run.config))

    @property
    def seed(self) -> int | None:
        """The seed of the random numbers."""
        return internals_of(self.run).seed

    @property
    def rank(self) -> int:
        """The rank of this process."""
        return self.run.world.rank

    @property
    def world_size(self) -> int:
        """The number of processes."""
        return self.run.world.size

    # --- what hooks share

    @cached_property
    def message_hub(self) -> MessageHub:
        """The values that hooks share."""
        # A new hub: one of this name would hold the values of an earlier run in this process.
        # It is set first, because what fills it asks for it.
        hub = self.__dict__["message_hub"] = MessageHub.new_instance(self.experiment_name)
        begin_filling(self)
        hub.recorder = HubRecorder(self.run)
        return hub

    def prepare_shared(self) -> None:
        """Make what hooks and models find without the runner, if they mention it in their code."""
        if "message_hub" in vars(self):
            begin_filling(self)  # Again: a test after a training has other hooks in its plan.
        elif is_mentioned(self.run, "MessageHub", "message_hub", "log_processor"):
            _ = self.message_hub
        if is_mentioned(self.run, "Visualizer"):
            _ = self.visualizer

    @property
    def logger(self) -> logging.Logger:
        """The logger of the run, whose lines are shown as MMEngine shows them."""
        return logging.getLogger(*self.loggers)

    @cached_property
    def visualizer(self) -> object:
        """The project's own visualizer, or one that passes everything to hookloop's writers."""
        from hookloop_mmengine.run_visualizer import visualizer_of

        return visualizer_of(self.run)

    @cached_property
    def log_processor(self) -> object:
        """The formatter of log lines."""
        from hookloop_mmengine.runner.log_processor import LogProcessor

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
        from hookloop_mmengine.registry import HOOKS

        built = HOOKS.build(hook) if isinstance(hook, Mapping) else hook
        if priority is not None:
            built.priority = priority  # type: ignore[attr-defined]
        names = {present.name for present in self.run.hooks}
        added = adapt_all([built])
        for native in added:
            if native.name in names:
                native.named(f"{native.name}_{len(names) + 1}")
        plan_of(self.run).add(*added)
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

    def load_checkpoint(
        self,
        filename: str,
        map_location: object = "cpu",
        strict: bool = False,
        revise_keys: Sequence[tuple[str, str]] = ((r"^module\.", ""),),
    ) -> dict[str, object]:
        """Load the weights of a file into the model; return the whole checkpoint."""
        from hookloop_mmengine.runner.checkpoint import put_weights, read_checkpoint

        checkpoint = read_checkpoint(filename, map_location)
        # Before the weights are copied, so that hooks can change them, as in MMEngine.
        self.call_hook("after_load_checkpoint", checkpoint=checkpoint)
        put_weights(self.run.model, checkpoint, strict=strict, revise_keys=list(revise_keys))
        return checkpoint

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
