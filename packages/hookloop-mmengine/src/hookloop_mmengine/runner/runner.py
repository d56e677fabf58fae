"""``mmengine.runner.Runner``: MMEngine's arguments, carried out by a `Trainer`."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from torch import nn
from torch.utils.data import DataLoader

from hookloop.dialects import adapt_all, plan_of
from hookloop_mmengine.config import Config
from hookloop_mmengine.dist.processes import connect, get_rank, get_world_size
from hookloop_mmengine.model.wrappers import unwrapped
from hookloop_mmengine.registry import DefaultScope
from hookloop_mmengine.runner.environment import set_up, timeout_of
from hookloop_mmengine.runner.features import check_features
from hookloop_mmengine.runner.parts import (
    Described,
    build_dataloader,
    read_evaluation_cfg,
    read_train_cfg,
)
from hookloop_mmengine.runner.seed import set_random_seed
from hookloop_mmengine.runner.setup import (
    TOGETHER,
    Phase,
    RunnerSetup,
    build_hook,
    choose_hooks,
)

if TYPE_CHECKING:
    import logging

    from hookloop_mmengine.optim import OptimWrapper

Loader = DataLoader[object] | Described


class Runner(RunnerSetup):
    """Train, validate and test with MMEngine's arguments.

    Every argument that takes an object also takes a dict that describes it.

    Args:
        model: A model with ``train_step``.
        work_dir: The directory of the run.
        train_dataloader: The loader of the training; likewise ``val_`` and ``test_dataloader``.
        train_cfg: ``dict(by_epoch=True, max_epochs=..., val_interval=...)``.
        optim_wrapper: A wrapped optimizer.
        param_scheduler: One scheduler or several.
        val_evaluator: The metrics of the validation; likewise ``test_evaluator``.
        default_hooks: Replacements of the six default hooks; None removes a hook.
        custom_hooks: Further hooks.
        load_from: A checkpoint to load the weights from, or to continue from with ``resume``.
        resume: Whether to continue ``load_from``, or the last checkpoint in ``work_dir``.
        launcher: ``pytorch`` for processes that torchrun has started, ``slurm`` or ``mpi``;
            ``none`` for a single process.
        randomness: ``dict(seed=..., deterministic=..., diff_rank_seed=...)``.
        visualizer: The destination of numbers and images.
        experiment_name: The name of the experiment; the time is added.
        cfg: The whole config.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - MMEngine's signature
        self,
        model: nn.Module | Described,
        work_dir: str,
        train_dataloader: Loader | None = None,
        val_dataloader: Loader | None = None,
        test_dataloader: Loader | None = None,
        train_cfg: Described | None = None,
        val_cfg: Described | None = None,
        test_cfg: Described | None = None,
        auto_scale_lr: Described | None = None,
        optim_wrapper: OptimWrapper | Described | None = None,
        param_scheduler: object = None,
        val_evaluator: object = None,
        test_evaluator: object = None,
        default_hooks: Mapping[str, object] | None = None,
        custom_hooks: Sequence[object] | None = None,
        data_preprocessor: nn.Module | Described | None = None,
        load_from: str | None = None,
        resume: bool = False,
        launcher: str = "none",
        env_cfg: Described | None = None,
        log_processor: Described | None = None,
        log_level: str = "INFO",
        visualizer: object = None,
        default_scope: str = "mmengine",
        randomness: Described | None = None,
        experiment_name: str | None = None,
        cfg: Described | Config | None = None,
    ) -> None:
        # Loaders and optimizers are built when a task needs them, so the arguments are kept.
        self._arguments = {name: value for name, value in locals().items() if name != "self"}
        _check_together(self._arguments)
        set_up(env_cfg)
        self._ranks = connect(launcher, timeout_of(env_cfg))
        self.hook = ""
        self._begin_facade()
        self.__dict__["cfg"] = cfg if isinstance(cfg, Config) else Config(dict(cfg or {}))
        check_features(cast("Described", self.cfg), is_alone=not self.distributed)
        self._half = {
            "val": read_evaluation_cfg(val_cfg, "val"),
            "test": read_evaluation_cfg(test_cfg, "test"),
        }
        self._begin_files(Path(work_dir), experiment_name)
        # Before anything is built, because names are looked up in this scope.
        DefaultScope.get_instance(self.experiment_name, scope_name=default_scope or "mmengine")
        self._begin_logging(visualizer, log_processor, log_level)
        seeding = dict(randomness or {})
        # Before the model is built, whose initial weights depend on it.
        self._seed = set_random_seed(**seeding)  # type: ignore[arg-type]
        self._diff_rank_seed = bool(seeding.get("diff_rank_seed"))
        self._load_from, self._resume = load_from, resume
        self._settings = read_train_cfg(train_cfg) if train_cfg is not None else None
        self._model = self._build_model(model, data_preprocessor)
        self._listed = choose_hooks(default_hooks, custom_hooks)
        self._native = adapt_all(self._listed)
        # At the end, so that a runner that cannot be built leaves no config.
        self._dump_config()

    @classmethod
    def from_cfg(cls, cfg: Config | Mapping[str, object]) -> Runner:
        """Make a runner from a config; the config itself is not changed."""
        # Objects in a config, such as metrics, have a state of their own.
        copied = copy.deepcopy(cfg)
        names = inspect.signature(cls).parameters
        arguments = {name: copied[name] for name in names if name in copied and name != "cfg"}
        arguments.setdefault("work_dir", "work_dirs")
        return cls(**arguments, cfg=copied)  # type: ignore[arg-type]

    build_dataloader = staticmethod(build_dataloader)

    # --- attributes that hooks use, before and during a run

    @property
    def iter(self) -> int:
        return super().iter if "run" in self.__dict__ else 0

    @property
    def epoch(self) -> int:
        return super().epoch if "run" in self.__dict__ else 0

    @property
    def is_iter_based(self) -> bool:
        return self._settings is not None and not self._settings.by_epoch

    @property
    def max_epochs(self) -> int:
        return self._settings.limit if self._settings and self._settings.by_epoch else 1

    @property
    def model(self) -> nn.Module:
        return self._view_of(self.run.model if "run" in self.__dict__ else self._model)

    @model.setter
    def model(self, model: nn.Module) -> None:
        self._model = unwrapped(model)
        if "run" in self.__dict__:
            self.run.model = self._model

    @property
    def rank(self) -> int:
        return get_rank()

    @property
    def world_size(self) -> int:
        return get_world_size()

    @property
    def distributed(self) -> bool:
        return get_world_size() > 1

    def evaluates_in_half(self, phase: str) -> bool:
        """Whether the config of a phase asks for half precision."""
        return self._half[phase]

    @property
    def finds_unused(self) -> bool:
        """Whether parameters may be left out of a loss, on several processes."""
        cfg = cast("Described", self.cfg)
        # At the top, or for the wrapper that MMEngine would put around the model.
        places = [cfg, cfg["model_wrapper_cfg"]] if "model_wrapper_cfg" in cfg else [cfg]
        name = "find_unused_parameters"
        return any(name in place and bool(place[name]) for place in cast("list[Described]", places))

    @property
    def param_schedulers(self) -> object:
        # MMEngine keeps those of several optimizers by name, and hooks rely on it.
        if self._by_optimizer is not None:
            return self._by_optimizer
        return super().param_schedulers if "run" in self.__dict__ else []

    @param_schedulers.setter
    def param_schedulers(self, schedulers: object) -> None:
        self._by_optimizer = schedulers if isinstance(schedulers, Mapping) else None
        RunnerSetup.param_schedulers.fset(self, schedulers)  # type: ignore[attr-defined]

    @property
    def work_dir(self) -> str:
        return str(self._work_dir)

    @property
    def seed(self) -> int:
        return self._seed

    @property
    def logger(self) -> logging.Logger:
        return self._logger

    @property
    def hooks(self) -> list[object]:
        return list(self._listed)

    _hooks = hooks

    def _shown_loader(self, phase: Phase) -> object:
        loader, loop = self._loader(phase), self.__dict__.get(f"{phase}_loop")
        return loader if loop is None else loop.show(loader)

    @property
    def train_dataloader(self) -> object:
        return self._shown_loader("train")

    @property
    def val_dataloader(self) -> object:
        return self._shown_loader("val")

    @property
    def test_dataloader(self) -> object:
        return self._shown_loader("test")

    def register_hook(self, hook: object, priority: int | str | None = None) -> None:
        """Add a hook, also to a run in progress."""
        built = build_hook(hook)
        if priority is not None:
            built.priority = priority  # type: ignore[attr-defined]
        self._listed.append(built)
        # All are adapted again, so that the new hook gets a name that no other has.
        added = adapt_all(self._listed)[len(self._native) :]
        self._native += added
        if "run" in self.__dict__ and self.run.outcome.status == "running":
            plan_of(self.run).add(*added)
            for native in added:
                # Bound now: the point at which hooks get their runner has passed.
                bind = getattr(native, "bind_facade", None)
                if callable(bind):
                    bind(self.run)

    def register_custom_hooks(self, hooks: Sequence[object]) -> None:
        """Add several hooks."""
        for hook in hooks:
            self.register_hook(hook)

    # --- the three tasks

    def train(self) -> nn.Module:
        """Train and return the model."""
        if self._settings is None:
            raise RuntimeError("`train_cfg`, `train_dataloader` and `optim_wrapper` are needed.")
        if not hasattr(self._model, "train_step"):
            raise RuntimeError("If you want to train your model, please implement `train_step`.")
        trainer = self._make_trainer(self._settings).trainer
        # MMEngine's order: weights are initialized after the optimizer is built.
        init = getattr(self._model, "init_weights", None)
        if callable(init):
            init()
        self._turn_on_features("train_step")
        trainer.train()
        self._detach(trainer)
        return self._model

    def val(self) -> dict[str, object]:
        """Validate and return the metrics."""
        return self._evaluate("val")

    def test(self) -> dict[str, object]:
        """Test and return the metrics."""
        return self._evaluate("test")


def _check_together(arguments: Mapping[str, object]) -> None:
    for names in TOGETHER.values():
        given = [name for name in names if arguments[name] is not None]
        if given and len(given) != len(names):
            raise ValueError(
                f"{', '.join(names)} should be all None or not None, but only "
                f"{', '.join(given)} {'is' if len(given) == 1 else 'are'} given."
            )
