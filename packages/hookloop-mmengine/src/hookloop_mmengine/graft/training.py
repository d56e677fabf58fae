"""`Training`: a train loop of the real MMEngine, driven by our engine.

    Runner.train -> train_loop.run -> Training.run -> Trainer -> our loop -> the real hooks

The runner has built everything, in its own order, when the loop is run. Model, optimizers, data,
hooks, schedulers, evaluators and visualizer are the real ones.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from hookloop import Data, Every, Update, Validation
from hookloop import hooks as native
from hookloop.dialects import Driven, World, plan_of
from hookloop_mmengine.graft.evaluation import RunValLoop, data_of
from hookloop_mmengine.graft.hooks import (
    BeginEpoch,
    GraftedHook,
    KeepCounters,
    SaveWhenInterrupted,
)
from hookloop_mmengine.graft.saving import LaterRemoval, SaveFiles, meta_of
from hookloop_mmengine.loader_view import loader_view

if TYPE_CHECKING:
    import torch

    from hookloop import Hook, Run
    from hookloop.dialects import Stream

_log = logging.getLogger("hookloop")

NEVER = 10**12
"""An interval that no training reaches."""


class CallTrainStep(Update):
    """Let the real model make the update with the real optimizer wrapper.

    Args:
        runner: The runner.
        optimizers: The optimizers in the wrapper.
    """

    averages_itself = True

    def __init__(self, runner: Any, optimizers: list[torch.optim.Optimizer]) -> None:  # noqa: ANN401
        super().__init__("", lambda run: None, lambda run: None, optimizers)
        self._runner = runner

    @property
    def keeps_gradients(self) -> bool:
        """Whether gradients may wait for a later step; a custom wrapper may always do so."""
        return getattr(self._runner.optim_wrapper, "_accumulative_counts", 0) != 1

    def make(self, run: Run, batches: list[object]) -> None:
        """Make the update."""
        runner = self._runner
        run.output = runner.model.train_step(run.batch, optim_wrapper=runner.optim_wrapper)


class Training:
    """One training of a runner.

    Args:
        loop: The runner's train loop, by epochs or by iterations.
        is_iter_based: Whether it counts iterations.

    Attributes:
        asks_everywhere: Whether all ranks ask for the checkpoint that is being asked for.
    """

    def __init__(self, loop: Any, *, is_iter_based: bool) -> None:  # noqa: ANN401 - of mmengine
        self.loop = loop
        self.runner = loop.runner
        self.is_iter_based = is_iter_based
        self.asks_everywhere = False
        self.files = SaveFiles(self)
        self._known_hooks: list[Any] = []
        self._reported: set[str] = set()
        self._passes = 0
        self._loader = self._current_loader()
        self._driven = self._make_trainer()
        self.run = self._driven.trainer.run
        self._show(self._loader)

    # --- from start to end

    def train(self) -> object:
        """Train, and return the model."""
        runner, loop = self.runner, self.loop
        runner.hookloop_training = self
        # The methods of this runner only, so that nothing has to be asked in other runs.
        register = runner.register_hook

        def register_in_run(*args: object, **kwargs: object) -> None:
            register(*args, **kwargs)
            self._follow_hooks()

        runner.register_hook = register_in_run
        try:
            self._driven.trainer.train()
            self.files.finish()
        finally:
            del runner.register_hook, runner.hookloop_training
            self._give_back_backends()
            if loop.dataloader is self._shown:
                loop.dataloader = self._given
        return loop.runner.model

    def _make_trainer(self) -> Driven:
        runner, loop = self.runner, self.loop
        optimizers = optimizers_of(runner.optim_wrapper)
        unit = "iters" if self.is_iter_based else "epochs"
        # By iterations there is one long epoch: the end of the data is not an event.
        limit = "max_iters" if self.is_iter_based else "max_epochs"
        limits = {limit: loop.max_iters if self.is_iter_based else loop.max_epochs}
        self._known_hooks = list(runner._hooks)
        hooks: list[Hook] = [BeginEpoch(self), *self._adapted(self._known_hooks), self.files]
        model = _unwrapped(runner.model)
        hooks += [SaveWhenInterrupted(), native.StopOnSignal(), KeepCounters(self)]
        driven = Driven(
            world=_world(),  # Its data is divided already.
            model=model,
            train_data=self._loader,
            val_data=data_of(runner.val_loop) if runner.val_loop is not None else None,
            step=CallTrainStep(runner, list(optimizers.values())),
            optimizer=optimizers,
            val_every=Validation(f"{self._val_interval()} {unit}", begin=loop.val_begin),
            hooks=hooks,
            default_hooks=False,  # Those of MMEngine are among the hooks.
            device=next(runner.model.parameters()).device,
            run_dir=Path(runner.work_dir),
            data=Data(
                epoch_iters=loop.max_iters if self.is_iter_based else None,
                seed_samples="workers",  # The same random numbers as without us.
            ),
            # Once: a second call continues what was trained.
            resume=vars(runner).pop("hookloop_resume", None),
            **limits,
        )
        driven.use_directory()  # MMEngine trains again in a directory that holds a run.
        driven.validate_with(RunValLoop(driven.trainer.run, self))
        driven.point_with_whole_paths()
        self._place(driven.trainer.run)
        return driven

    def _place(self, run: Run) -> None:
        """Begin where MMEngine's loop stands, which a checkpoint of its own may have moved."""
        loop, progress = self.loop, run.progress
        source = cast("Stream | None", run.train_data)  # MMEngine mixes nothing.
        progress.iter = loop.iter
        progress.epoch = 0 if self.is_iter_based else loop.epoch
        if source is not None and self.is_iter_based:
            source.set_epoch_per_pass()  # Samplers shuffle each pass.
            if loop.iter:
                progress.iter_in_epoch, progress.stage = loop.iter, "inside"
                passes, batches = divmod(loop.iter, source.num_batches or loop.iter + 1)
                source.place_at(passes=1 + passes, batches=batches)
            else:
                source.place_at(order=getattr(loop.dataloader_iterator, "began", None))

    def wait_for_files(self) -> None:
        """Wait until what was saved is on the disk."""
        self._driven.wait_for_saves()

    def report_once(self, message: str) -> None:
        """Report what is lost; once, however often it happens."""
        if message not in self._reported:
            self._reported.add(message)
            _log.warning(message)

    # --- what MMEngine's loop does, at the points

    def index(self, run: Run) -> int:
        """Return how many batches of the epoch are done, which is the index of the next."""
        return run.progress.iter if self.is_iter_based else run.progress.iter_in_epoch

    def iteration_begins(self) -> None:
        """Do what comes before the hooks of an iteration."""
        source = cast("Stream | None", self.run.train_data)
        if not self.is_iter_based or source is None:
            return
        if source.passes != self._passes:
            source.place_at()  # Only the first pass began before the training.
        if source.passes > self._passes > 0:
            self.runner.logger.warning(
                "The data has ended and is read from its start again. mmengine.dataset."
                "InfiniteSampler never ends, so that workers continue."
            )
        self._passes = source.passes
        if not self.runner.model.training:
            self.runner.model.train()

    def iteration_ended(self, run: Run) -> None:
        """Move the counters after the hooks of an iteration."""
        loop = self.loop
        loop._iter = run.progress.iter
        if len(self.runner._hooks) != len(self._known_hooks):
            self._follow_hooks()
        if self.is_iter_based:
            self._follow_limits()
            self.follow_data()
            if loop.stop_training:
                self.obey_stop()

    def epoch_ended(self, run: Run) -> None:
        """Move the counters after the hooks of an epoch."""
        if not self.is_iter_based:
            self.loop._epoch = run.progress.epoch
            self._follow_limits()
            self.obey_stop()

    def obey_stop(self) -> None:
        """End the training if a hook has asked for it, after the epoch or iteration."""
        if self.loop.stop_training:
            self.run.stop("a hook has set runner.train_loop.stop_training")

    def _follow_limits(self) -> None:
        """Obey the interval of validations and the limit, which hooks may change."""
        loop, driven = self.loop, self._driven
        loop._decide_current_val_interval()
        progress = self.run.progress
        if driven.val_every.count != (interval := self._val_interval()):
            driven.val_every = Every(interval, driven.val_every.unit)
        driven.val_begin = loop.val_begin
        if self.is_iter_based:
            progress.max_iters = loop.max_iters
        else:
            progress.max_epochs = loop.max_epochs

    def follow_data(self) -> None:
        """Read another loader if a hook has replaced it."""
        loader, source = self._current_loader(), cast("Stream | None", self.run.train_data)
        if loader is not self._loader and source is not None:
            self._passes = 0
            source.replace(loader)
            self._show(loader)
            began = getattr(getattr(self.loop, "dataloader_iterator", None), "began", None)
            if self.is_iter_based and began is not None:
                source.place_at(order=began)

    def _show(self, loader: Any) -> None:  # noqa: ANN401 - any loader
        """Let hooks see a loader whose workers they can restart as in MMEngine."""
        self._given = loader
        self._shown = self.loop.dataloader = loader_view(loader, self.run.train_data)
        self._loader = loader if self.is_iter_based else self._shown

    def _follow_hooks(self) -> None:
        """Add hooks that were registered during the training."""
        known = {id(hook) for hook in self._known_hooks}
        added = [hook for hook in self.runner._hooks if id(hook) not in known]
        self._known_hooks = list(self.runner._hooks)
        names = {hook.name for hook in self.run.hooks}
        for hook in self._adapted(added):
            while hook.name in names:
                hook.named(f"{hook.name}_{len(names) + 1}")
            plan_of(self.run).add(hook)
            hook.attributes.settle()

    # --- parts

    def _adapted(self, hooks: list[Any]) -> list[GraftedHook]:
        adapted = [GraftedHook(hook, self) for hook in hooks]
        for name, count in Counter(one.name for one in adapted).items():
            # Names are unique in a run, and MMEngine asks for none.
            same = [one for one in adapted if one.name == name] if count > 1 else []
            for number, one in enumerate(same[1:], 2):
                one.named(f"{name}_{number}")
        return adapted

    def delay_removals(self) -> None:
        """Let each CheckpointHook delete files only when what replaces them is durable."""
        from mmengine.hooks import CheckpointHook

        for hook in self._known_hooks:
            backend = getattr(hook, "file_backend", None)
            if isinstance(hook, CheckpointHook) and not isinstance(backend, LaterRemoval):
                hook.file_backend = LaterRemoval(backend, self.files)

    def _give_back_backends(self) -> None:
        for hook in self._known_hooks:
            if isinstance(backend := getattr(hook, "file_backend", None), LaterRemoval):
                hook.file_backend = backend.backend

    def _current_loader(self) -> Any:  # noqa: ANN401 - any loader
        if self.is_iter_based:
            return self.loop.dataloader_iterator._dataloader
        return self.loop.dataloader

    def _val_interval(self) -> int:
        interval = self.loop.val_interval
        return interval if isinstance(interval, int) and interval > 0 else NEVER

    def scheduler_states(self) -> object:
        """Return the states of the parameter schedulers, in MMEngine's form; None if none."""
        schedulers = self.runner.param_schedulers
        if schedulers is None:
            return None
        if isinstance(schedulers, dict):
            return {name: list(map(scheduler_state, each)) for name, each in schedulers.items()}
        return list(map(scheduler_state, schedulers))

    def meta(self) -> dict[str, object]:
        """Return the ``meta`` of a checkpoint that MMEngine did not ask for."""
        return meta_of(self.runner, {"epoch": self.loop.epoch, "iter": self.loop.iter})


def scheduler_state(scheduler: Any) -> dict[str, object]:  # noqa: ANN401 - of mmengine
    """Return the state of a scheduler without its functions, which it has from its arguments."""
    return {name: one for name, one in scheduler.state_dict().items() if not callable(one)}


def optimizers_of(wrapper: Any) -> dict[str, torch.optim.Optimizer]:  # noqa: ANN401 - of mmengine
    """Return the optimizers in a wrapper by name."""
    from mmengine.optim import OptimWrapperDict

    if isinstance(wrapper, OptimWrapperDict):
        return {name: single.optimizer for name, single in wrapper.items()}
    return {"default": wrapper.optimizer}


def _unwrapped(model: Any) -> torch.nn.Module:  # noqa: ANN401 - of a project
    from mmengine.model import is_model_wrapper

    return cast("torch.nn.Module", model.module if is_model_wrapper(model) else model)


def _world() -> World:
    from mmengine import dist

    rank, size = dist.get_dist_info()
    if size == 1:  # Also under a launcher, if the config says that there is none.
        return World()
    local = (int(os.environ.get(name, "0")) for name in ("LOCAL_RANK", "LOCAL_WORLD_SIZE"))
    return World(rank, size, *local)
