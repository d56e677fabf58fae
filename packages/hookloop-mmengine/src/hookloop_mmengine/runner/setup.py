"""Build the parts of a runner: files, log, model, hooks, and a `Trainer` for each task."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from torch import nn
from torch.utils.data import DataLoader

from hookloop import Data, Hook, Validation
from hookloop import hooks as native
from hookloop.dialects import Driven, adapt_all, internals_of, length_of
from hookloop_mmengine.config import Config
from hookloop_mmengine.dist import broadcast_object_list, master_only
from hookloop_mmengine.evaluator import Evaluator
from hookloop_mmengine.facade import RunnerFacade
from hookloop_mmengine.logging import MessageHub, MMLogger
from hookloop_mmengine.loops import TestLoop, ValLoop, make_train_loop
from hookloop_mmengine.optim import OptimWrapper, OptimWrapperDict
from hookloop_mmengine.registry import (
    EVALUATOR,
    HOOKS,
    LOG_PROCESSORS,
    MODELS,
    VISUALIZERS,
)
from hookloop_mmengine.runner.checkpoint import find_latest_checkpoint, read_checkpoint
from hookloop_mmengine.runner.features import (
    compile_step,
    recompute_activations,
    with_plain_norms,
)
from hookloop_mmengine.runner.parts import (
    Described,
    LoopSettings,
    as_schedules,
    build_all_schedulers,
    build_dataloader,
    build_wrapper,
    listed_schedulers,
    scale_lr,
)
from hookloop_mmengine.runner.start import AddForeignKeys, LoadForeign, PrepareRun
from hookloop_mmengine.runner.update import EvaluatorMetric, ModelUpdate

if TYPE_CHECKING:
    import torch

    from hookloop import Progress, Run, Trainer
    from hookloop.dialects import Ranks
    from hookloop_mmengine.runner.runner import Runner

Phase = Literal["train", "val", "test"]
FACADE = f"{RunnerFacade.__module__}.{RunnerFacade.__qualname__}"

DEFAULT_HOOKS: dict[str, Described] = {
    "runtime_info": {"type": "RuntimeInfoHook"},
    "timer": {"type": "IterTimerHook"},
    "sampler_seed": {"type": "DistSamplerSeedHook"},
    "logger": {"type": "LoggerHook"},
    "param_scheduler": {"type": "ParamSchedulerHook"},
    "checkpoint": {"type": "CheckpointHook", "interval": 1},
}
TOGETHER = {
    "train": ("train_dataloader", "train_cfg", "optim_wrapper"),
    "val": ("val_dataloader", "val_cfg", "val_evaluator"),
    "test": ("test_dataloader", "test_cfg", "test_evaluator"),
}


class RunnerSetup(RunnerFacade):
    """The part of a runner that builds; `Runner` has its arguments and its public methods."""

    _arguments: Mapping[str, object]
    _settings: LoopSettings | None
    _seed: int
    _diff_rank_seed: bool
    _load_from: str | None
    _model: nn.Module
    _native: list[Hook]
    _ranks: Ranks | None
    _half: Mapping[str, bool]
    _progress: Progress | None = None
    _by_optimizer: Mapping[str, Sequence[object]] | None = None

    # --- at construction

    def _begin_files(self, work_dir: Path, experiment_name: str | None) -> None:
        work_dir.mkdir(parents=True, exist_ok=True)
        self._work_dir = work_dir.absolute()
        shared: list[object] = [time.strftime("%Y%m%d_%H%M%S")]
        broadcast_object_list(shared)  # The clock of the first process counts.
        stamp = str(shared[0])
        filename = self.cfg.filename  # type: ignore[attr-defined]
        name = experiment_name or (Path(filename).stem if filename else None)
        # Through __dict__, because the facade defines these names as cached properties.
        self.__dict__["timestamp"] = stamp
        base = unique = f"{name}_{stamp}" if name else stamp
        number = 1
        # Two runners of one second would share their hub and their log.
        while MessageHub.check_instance_created(unique):
            number += 1
            unique = f"{base}-{number}"
        self.__dict__["experiment_name"] = unique

    def _begin_logging(self, visualizer: object, log_processor: object, level: str) -> None:
        name = self.experiment_name
        self._logger = MMLogger.get_instance(
            name, log_file=Path(self.log_dir) / f"{self.timestamp}.log", log_level=level
        )
        self.__dict__["message_hub"] = MessageHub.get_instance(name)
        self.__dict__["visualizer"] = visualizer = build_visualizer(visualizer, name, self.log_dir)
        if len(cast("Config", self.cfg)):
            visualizer.add_config(self.cfg)  # type: ignore[attr-defined]
        if not isinstance(log_processor, Mapping | None):
            self.__dict__["log_processor"] = log_processor
        else:
            described = {"type": "LogProcessor", **(log_processor or {})}
            self.__dict__["log_processor"] = LOG_PROCESSORS.build(described)

    def _build_model(self, model: object, data_preprocessor: object) -> nn.Module:
        if isinstance(model, Mapping):
            extra = {} if data_preprocessor is None else {"data_preprocessor": data_preprocessor}
            model = MODELS.build({**extra, **model})
        if not isinstance(model, nn.Module):
            raise TypeError(f"model should be a nn.Module object or dict, but got {model!r}")
        return model if self.distributed else with_plain_norms(model)

    def _turn_on_features(self, step: str) -> None:
        cfg = cast("Described", self.cfg)
        if step == "train_step" and (names := cfg.get("activation_checkpointing")) is not None:
            recompute_activations(self._model, cast("str | list[str]", names))
        compile_step(self._model, cfg.get("compile"), step)

    @master_only
    def _dump_config(self) -> None:
        cfg = cast("Config", self.cfg)
        if len(cfg):
            name = Path(cfg.filename).name if cfg.filename else f"{self.timestamp}.py"
            cfg.dump(self._work_dir / name)

    # --- parts, when they are needed

    def _loader(self, phase: Phase) -> DataLoader[object] | None:
        key = f"_{phase}_loader"
        # Built once: train() and val() must share their loaders.
        if key not in self.__dict__:
            loader = cast("Described | None", self._arguments[f"{phase}_dataloader"])
            built = None
            if loader is not None:
                built = build_dataloader(loader, self._seed, self._diff_rank_seed)
            self.__dict__[key] = built
        return cast("DataLoader[object] | None", self.__dict__[key])

    def _evaluator(self, phase: Phase) -> Evaluator:
        key = f"{phase}_evaluator"
        if key not in self.__dict__:
            evaluator = self._arguments[key]
            if isinstance(evaluator, Mapping) and "metrics" in evaluator:
                evaluator = EVALUATOR.build({"type": "Evaluator", **evaluator})
            elif not isinstance(evaluator, Evaluator):
                evaluator = Evaluator(evaluator)  # type: ignore[arg-type]
            evaluator.dataset_meta = getattr(  # type: ignore[attr-defined]
                getattr(self._loader(phase), "dataset", None), "metainfo", None
            )
            self.__dict__[key] = evaluator
        return cast("Evaluator", self.__dict__[key])

    def _make_evaluator(self, phase: Literal["val", "test"]) -> object:
        return None if self._arguments[f"{phase}_evaluator"] is None else self._evaluator(phase)

    def _metrics(self, phase: Phase) -> dict[str, EvaluatorMetric]:
        size = len(self._loader(phase).dataset)  # type: ignore[union-attr, arg-type]
        return {"": EvaluatorMetric(cast("Runner", self), self._evaluator(phase), size)}

    # --- one Trainer per task

    def _make_trainer(self, settings: LoopSettings) -> Driven:
        loader = self._loader("train")
        wrapper = build_wrapper(cast("Described", self._arguments["optim_wrapper"]), self._model)
        self.__dict__["optim_wrapper"] = wrapper
        optimizers = _optimizers(wrapper)
        scale_lr(cast("Described | None", self._arguments["auto_scale_lr"]), loader, optimizers)
        length = length_of(loader)
        schedulers = build_all_schedulers(
            self._arguments["param_scheduler"], wrapper, settings, length
        )
        self._by_optimizer = schedulers if isinstance(schedulers, Mapping) else None
        schedules = as_schedules(listed_schedulers(schedulers))
        validates = self._loader("val") is not None
        runner = cast("Runner", self)
        prepare = PrepareRun(runner, settings.dynamic_intervals)
        # Whether anything steps the schedulers is for the user's hooks to decide, as in MMEngine.
        if not any("schedules" in hook.owns for hook in self._native):
            prepare.owns = ("schedules",)
        start, resume = self._start_hooks()
        # LoadForeign after the user's hooks, whose before_run may build what it loads into.
        hooks = [prepare, *self._native, *start, AddForeignKeys(runner), native.StopOnSignal()]
        update = ModelUpdate(runner, list(optimizers.values()))
        driven = Driven(
            model=self._model,
            train_data=loader,
            val_data=self._loader("val") if validates else None,
            step=update,
            optimizer=optimizers,
            schedule=schedules,
            metrics=self._metrics("val") if validates else None,
            val_every=Validation(
                f"{settings.val_interval} {'epochs' if settings.by_epoch else 'iters'}",
                begin=settings.val_begin,
            ),
            hooks=hooks,
            default_hooks=False,  # Those of MMEngine are among the hooks.
            run_dir=self._work_dir,
            resume=resume,
            max_epochs=settings.limit if settings.by_epoch else None,
            max_iters=None if settings.by_epoch else settings.limit,
            # One long epoch: in a training by iterations, the end of the data is not an event.
            data=Data(epoch_iters=None if settings.by_epoch else settings.limit),
        )
        trainer = driven.trainer
        prepare.driven = driven
        prepare.update = update
        if trainer.run.train_data is not None and not settings.by_epoch:
            for stream in trainer.run.train_data.parts():
                stream.set_epoch_per_pass()  # Although there is only one epoch.
        self._attach(driven)
        view = make_train_loop(self, loader)
        view.val_interval, view.val_begin = settings.val_interval, settings.val_begin
        self.__dict__["train_loop"] = view
        return driven

    def _evaluate(self, phase: Literal["val", "test"]) -> dict[str, object]:
        if self._arguments[f"{phase}_cfg"] is None:
            raise RuntimeError(f"{', '.join(TOGETHER[phase])} are needed.")
        self._turn_on_features(f"{phase}_step")
        runner = cast("Runner", self)
        outer_run = self._current_run()  # A hook may call test() in the middle of a training.
        progress = self._progress if outer_run is None else outer_run.progress
        # After a training, its weights are tested and nothing is loaded.
        start, _ = self._start_hooks() if progress is None else ([], None)
        loader, metrics = self._loader(phase), self._metrics(phase)
        driven = Driven(
            model=self._model,
            step=ModelUpdate(runner, []),
            metrics=metrics,
            hooks=[*self._native, *start],
            default_hooks=False,
            run_dir=self._work_dir,
            val_data=loader if phase == "val" else None,
            data=Data(test=loader if phase == "test" else None),
        )
        trainer = driven.trainer
        if progress is not None:  # Hooks see the counters of the training.
            trainer.run.progress.iter = progress.iter
            trainer.run.progress.epoch = progress.epoch
        self._attach(driven)
        try:
            if phase == "val":
                trainer.validate()
            else:
                trainer.test()
        finally:
            if outer_run is not None:
                self.run = outer_run  # The training continues with it.
        if outer_run is None:
            self._detach(trainer)
        return dict(self.raw_metrics or {})

    def _current_run(self) -> Run | None:
        run = cast("Run | None", self.__dict__.get("run"))
        return run if run is not None and run.outcome.status == "running" else None

    def _attach(self, driven: Driven) -> None:
        """Make this runner the facade of the trainer's run."""
        # MMEngine trains again in a work_dir that holds a run, which our Trainer would reject.
        driven.use_directory()
        trainer = driven.trainer
        if self._ranks is not None:  # One connection for all tasks.
            internals_of(trainer.run).ranks = self._ranks
        self.run = trainer.run
        internals_of(self.run).shared[FACADE] = self
        if self._progress is not None:
            self._progress.max_epochs = self.run.progress.max_epochs
            self._progress.max_iters = self.run.progress.max_iters
        for phase in ("val", "test"):
            loader = self._loader(phase)
            if loader is not None and phase in self._phases(trainer):
                evaluator = self._evaluator(phase)
                kind = ValLoop if phase == "val" else TestLoop
                self.__dict__[f"{phase}_loop"] = kind(self, loader, evaluator)

    def _phases(self, trainer: Trainer) -> list[Phase]:
        run = trainer.run
        return [p for p, d in (("val", run.val_data), ("test", internals_of(run).test_data)) if d]  # type: ignore[misc]

    def _detach(self, trainer: Trainer) -> None:
        self._model, self._progress = trainer.run.model, trainer.run.progress
        self._logger.close()

    def _start_hooks(self) -> tuple[list[Hook], str | None]:
        """Return the hook that loads a checkpoint, or the path of one that the trainer resumes.

        Our own checkpoints are resumed exactly; MMEngine's hold less, so a hook reads them.
        """
        path = self._load_from
        if self._resume and path is None:
            stores = [store for hook in self._native for store in hook.stores(self._work_dir)]
            # Also in the other directories that hooks save to.
            found: list[object] = [find_latest_checkpoint(self._work_dir, stores)]
            broadcast_object_list(found)  # The first process decides.
            path = cast("str | None", found[0])
            if path is None:
                self._logger.warning("There is no checkpoint in %s to resume.", self._work_dir)
        if path is None:
            return [], None
        if self._resume and "progress" in read_checkpoint(path):
            return [], path
        return [LoadForeign(cast("Runner", self), path, resume=self._resume)], None


def build_visualizer(visualizer: object, name: str, directory: str) -> object:
    """Build the visualizer of a runner; an object is returned unchanged."""
    if not isinstance(visualizer, Mapping | None):
        return visualizer
    default = {"type": "Visualizer", "vis_backends": [{"type": "LocalVisBackend"}]}
    described = {"name": name, "save_dir": directory, **(visualizer or default)}
    built = VISUALIZERS.build({"type": "Visualizer", **described})
    built.belongs_to_runner = True  # type: ignore[attr-defined]
    return built


def choose_hooks(
    defaults: Mapping[str, object] | None, customs: Sequence[object] | None
) -> list[object]:
    """Build the default hooks, as far as they are not replaced or removed, and further ones."""
    # An entry replaces the whole default; nothing is merged, as in MMEngine.
    chosen: dict[str, object] = dict(DEFAULT_HOOKS)
    for name, entry in (defaults or {}).items():
        if entry is None:
            if name not in DEFAULT_HOOKS:
                names = ", ".join(DEFAULT_HOOKS)
                raise AssertionError(
                    f"default_hooks: there is no '{name}' to remove; the names are: {names}."
                )
            del chosen[name]
        else:
            chosen[name] = entry
    return [build_hook(entry) for entry in [*chosen.values(), *(customs or ())]]


def build_hook(entry: object) -> object:
    """Build a hook from a config dict; ``priority`` is not an argument of its class."""
    if isinstance(entry, Mapping):
        described = dict(entry)
        priority = described.pop("priority", None)
        hook = HOOKS.build(described)
        if priority is not None:
            hook.priority = priority  # type: ignore[attr-defined]
        return hook
    # No native hooks at all are fine: a catalogued hook may be set to do nothing.
    is_hook = all(isinstance(native_hook, Hook) for native_hook in adapt_all([entry]))
    if isinstance(entry, type | str) or not is_hook:
        raise TypeError(f"hook should be an instance of Hook or dict, but got {entry!r}")
    return entry


def _optimizers(wrapper: OptimWrapper) -> dict[str, torch.optim.Optimizer]:
    if isinstance(wrapper, OptimWrapperDict):
        return {name: single.optimizer for name, single in wrapper.items()}
    return {"default": wrapper.optimizer}
