"""Build loaders, optimizers and schedulers from the runner's config dicts."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import cast

from torch import nn
from torch.optim import Optimizer
from torch.utils.data import DataLoader, Dataset

from hookloop import Schedule
from hookloop.errors import nearest
from hookloop_mmengine.dataset import pseudo_collate, worker_init_fn
from hookloop_mmengine.dist import get_rank, get_world_size
from hookloop_mmengine.dist.processes import undivided
from hookloop_mmengine.loops import (
    EpochBasedTrainLoop,
    IterBasedTrainLoop,
    TestLoop,
    ValLoop,
)
from hookloop_mmengine.optim import OptimWrapper, OptimWrapperDict, build_optim_wrapper
from hookloop_mmengine.optim.scheduler import _ParamScheduler
from hookloop_mmengine.registry import (
    DATA_SAMPLERS,
    DATASETS,
    FUNCTIONS,
    OPTIM_WRAPPERS,
    PARAM_SCHEDULERS,
)

Described = Mapping[str, object]


@dataclass(frozen=True)
class LoopSettings:
    """The settings of ``train_cfg``.

    Attributes:
        by_epoch: Whether epochs are counted, and not iterations.
        limit: The number of epochs or iterations.
        val_interval: Epochs or iterations between two validations.
        val_begin: The first epoch or iteration that is validated.
        dynamic_intervals: Milestones, with the interval from then on.
    """

    by_epoch: bool
    limit: int
    val_interval: int
    val_begin: int
    dynamic_intervals: list[tuple[int, int]] = field(default_factory=list)


LOOPS = ("EpochBasedTrainLoop", "IterBasedTrainLoop")


def read_train_cfg(cfg: Described) -> LoopSettings:
    """Read ``train_cfg``, which names the loop by ``type`` or by ``by_epoch``."""
    options = dict(cfg)
    kind = options.pop("type", None)
    if isinstance(kind, type) and kind in (EpochBasedTrainLoop, IterBasedTrainLoop):
        kind = kind.__name__
    if kind is not None and kind not in LOOPS:
        raise ValueError(
            f"train_cfg: the loop '{kind}' is not offered.{nearest(str(kind), LOOPS)} hookloop "
            f"runs the training itself: use {' or '.join(LOOPS)}, and move the rest of a custom "
            "loop into a hook."
        )
    by_epoch = options.pop("by_epoch", None)
    is_epoch_based = kind == "EpochBasedTrainLoop" if kind else by_epoch is not False
    limit = options.pop("max_epochs" if is_epoch_based else "max_iters", None)
    if not isinstance(limit, int):
        name = "max_epochs" if is_epoch_based else "max_iters"
        raise ValueError(f"train_cfg needs {name}, an integer, not {limit!r}.")
    settings = LoopSettings(
        is_epoch_based,
        limit,
        cast("int", options.pop("val_interval", 1 if is_epoch_based else 1000)),
        cast("int", options.pop("val_begin", 1)),
        [
            (int(m), int(i))
            for m, i in cast("list[tuple[int, int]]", options.pop("dynamic_intervals", None) or [])
        ],
    )
    if options:
        raise TypeError(f"train_cfg does not take {', '.join(options)}.")
    return settings


def read_evaluation_cfg(cfg: Described | None, phase: str) -> bool:
    """Read ``val_cfg`` or ``test_cfg``; return whether to evaluate in half precision."""
    options = dict(cfg or {})
    own = {"val": ValLoop, "test": TestLoop}[phase]
    kind = options.pop("type", own)
    if kind not in (own, own.__name__):
        raise ValueError(
            f"{phase}_cfg: the loop {kind!r} is not offered. hookloop runs the evaluation itself: "
            f"use {own.__name__}, and move the rest of a custom loop into a hook."
        )
    fp16 = bool(options.pop("fp16", False))
    if options:
        raise TypeError(f"{phase}_cfg does not take {', '.join(options)}.")
    return fp16


def build_dataloader(
    dataloader: DataLoader[object] | Described,
    seed: int | None = None,
    diff_rank_seed: bool = False,
) -> DataLoader[object]:
    """Build a loader from a dict; a loader is returned unchanged.

    ``batch_size`` counts the samples of one process, as in MMEngine. The loader has the global
    batches of all processes, which the engine divides, so its samplers yield the whole order.
    """
    if not isinstance(dataloader, Mapping):
        return dataloader
    options = copy.copy(dict(dataloader))
    batches = options.pop("num_batch_per_epoch", None)
    dataset = options.pop("dataset")
    if isinstance(dataset, Mapping):
        dataset = DATASETS.build(dataset)
        # Datasets of MMEngine's projects load their annotations lazily.
        init = getattr(dataset, "full_init", None)
        if callable(init):
            init()
    built = cast("Dataset[object]", dataset)
    if isinstance(options.get("batch_size"), int):
        options["batch_size"] *= get_world_size()  # type: ignore[operator]
    if batches is not None:
        built = FirstSamples(built, cast("int", batches) * _batch_size_of(options))
    sampler = options.pop("sampler", None)
    sampler_seed = None if diff_rank_seed else seed  # None: the processes agree on one.
    batch_sampler = options.pop("batch_sampler", None)
    with undivided():
        if isinstance(sampler, Mapping):
            sampler = DATA_SAMPLERS.build({"dataset": built, "seed": sampler_seed, **sampler})
        if isinstance(batch_sampler, Mapping):
            batch_size = options.pop("batch_size")
            described = {"sampler": sampler, "batch_size": batch_size, **batch_sampler}
            batch_sampler = DATA_SAMPLERS.build(described)
    if batch_sampler is not None:
        sampler = None  # It is inside the batch sampler; torch rejects both.
    options["worker_init_fn"] = _worker_init(options, seed)
    options["collate_fn"] = _collate(options.pop("collate_fn", None))
    return DataLoader(built, sampler=sampler, batch_sampler=batch_sampler, **options)  # type: ignore[arg-type]


def _batch_size_of(options: Described) -> int:
    """Return the samples of a batch of all processes."""
    size = options.get("batch_size")
    if size is None and isinstance(options.get("batch_sampler"), Mapping):
        own = cast("Described", options["batch_sampler"]).get("batch_size")
        size = None if own is None else cast("int", own) * get_world_size()
    if not isinstance(size, int):
        raise ValueError("num_batch_per_epoch needs batch_size, in the loader or its batch_sampler")
    return size


class FirstSamples(Dataset[object]):
    """The first samples of a dataset, which is otherwise shown as it is.

    Args:
        dataset: The dataset.
        length: How many samples, if it has that many.
    """

    def __init__(self, dataset: Dataset[object], length: int) -> None:
        self._dataset = dataset
        self._length = min(length, len(dataset))  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> object:
        # Not while it is being unpickled in a worker.
        if name.startswith("__") or "_dataset" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self._dataset, name)

    def __getitem__(self, index: int) -> object:
        return self._dataset[index]

    def __len__(self) -> int:
        return self._length


def _worker_init(options: dict[str, object], seed: int | None) -> Callable[..., None] | None:
    options.pop("disable_subprocess_warning", None)  # There is no such warning here.
    function = options.pop("worker_init_fn", None)
    if function is not None:
        return cast("Callable[..., None]", _function(function, "worker_init_fn"))
    if seed is None:
        return None
    workers = cast("int", options.get("num_workers", 0))
    return partial(worker_init_fn, num_workers=workers, rank=get_rank(), seed=seed)


def _collate(function: object) -> Callable[..., object]:
    return pseudo_collate if function is None else _function(function, "collate_fn")


def _function(described: object, where: str) -> Callable[..., object]:
    """Return a function; a dict names it by ``type``, with arguments."""
    if callable(described):
        return cast("Callable[..., object]", described)
    from hookloop_mmengine import dataset

    if not isinstance(described, Mapping) or "type" not in described:
        raise TypeError(f"{where} should be a dict with `type` or callable, but got {described!r}")
    options = dict(described)
    kind = options.pop("type")
    found = FUNCTIONS.get(kind) or getattr(dataset, kind, None) if isinstance(kind, str) else kind
    if not callable(found):
        raise KeyError(f"{where}: there is no function '{kind}'.")
    return partial(found, **options)


def build_wrapper(optim_wrapper: OptimWrapper | Described, model: nn.Module) -> OptimWrapper:
    """Build the optimizer wrapper; a dict of wrappers by name makes an `OptimWrapperDict`."""
    if isinstance(optim_wrapper, OptimWrapper):
        return optim_wrapper
    if not isinstance(optim_wrapper, Mapping):
        raise TypeError(f"optim_wrapper should be an OptimWrapper or a dict, not {optim_wrapper!r}")
    if "optimizer" in optim_wrapper or "constructor" in optim_wrapper or "type" in optim_wrapper:
        optimizer = optim_wrapper.get("optimizer")
        # A constructor needs the model; an optimizer object needs nothing more.
        if isinstance(optimizer, Mapping) or "constructor" in optim_wrapper:
            return build_optim_wrapper(model, optim_wrapper)
        return cast("OptimWrapper", OPTIM_WRAPPERS.build({"type": "OptimWrapper", **optim_wrapper}))
    wrappers = dict(cast("Mapping[str, OptimWrapper]", optim_wrapper))
    if not all(isinstance(wrapper, OptimWrapper) for wrapper in wrappers.values()):
        raise ValueError(
            "optim_wrapper has neither 'optimizer' nor 'type': several wrappers by name must be "
            "OptimWrapper objects."
        )
    return OptimWrapperDict(**wrappers)


def scale_lr(cfg: Described | None, loader: object, optimizers: Mapping[str, Optimizer]) -> None:
    """Scale the learning rates as ``auto_scale_lr`` asks for."""
    if not cfg or not cfg.get("enable"):
        return
    # Of all processes together, which is what MMEngine scales by.
    batch_size = cast("int", getattr(loader, "batch_size", 1))
    ratio = batch_size / cast("float", cfg["base_batch_size"])
    for optimizer in optimizers.values():
        for group in optimizer.param_groups:
            group["lr"] *= ratio


def build_schedulers(
    described: object, optimizer: object, settings: LoopSettings, epoch_length: int | None
) -> list[_ParamScheduler]:
    """Build the schedulers of one optimizer; by default they end with the training."""
    listed = described if isinstance(described, Sequence) else [described]
    built: list[_ParamScheduler] = []
    for entry in listed:
        if isinstance(entry, Mapping):
            options = dict(entry)
            # MMEngine's default, also in a training that counts iterations.
            by_epoch = options.setdefault("by_epoch", True)
            if by_epoch == settings.by_epoch:
                options.setdefault("end", settings.limit)
            elif not by_epoch and epoch_length:
                options.setdefault("end", settings.limit * epoch_length)
            elif by_epoch:  # A training that counts iterations is one epoch.
                options.setdefault("end", 1)
            scheduler = PARAM_SCHEDULERS.build(
                options, default_args={"optimizer": optimizer, "epoch_length": epoch_length}
            )
            built.append(cast("_ParamScheduler", scheduler))
        elif isinstance(entry, _ParamScheduler):
            built.append(entry)
        else:
            raise TypeError(f"scheduler should be a `_ParamScheduler` or dict, but got {entry!r}")
    return built


def build_all_schedulers(
    described: object, wrapper: OptimWrapper, settings: LoopSettings, epoch_length: int | None
) -> list[_ParamScheduler] | dict[str, list[_ParamScheduler]]:
    """Build the schedulers; of several optimizers by name, whether these share them or not."""
    if described is None:
        return []
    if not isinstance(wrapper, OptimWrapperDict):
        return build_schedulers(described, wrapper, settings, epoch_length)
    has_names = isinstance(described, Mapping) and "type" not in described
    by_name = cast("Mapping[str, object]", described) if has_names else None
    return {
        name: build_schedulers(
            by_name[name] if by_name else described, single, settings, epoch_length
        )
        for name, single in wrapper.items()
        if by_name is None or name in by_name
    }


def listed_schedulers(schedulers: object) -> list[_ParamScheduler]:
    """Return schedulers in one list; a hook may have them by the name of their optimizer."""
    if isinstance(schedulers, Mapping):
        return [one for part in schedulers.values() for one in listed_schedulers(part)]
    listed = schedulers if isinstance(schedulers, Sequence) else [schedulers]
    return cast("list[_ParamScheduler]", [one for one in listed if one is not None])


def as_schedules(schedulers: Sequence[_ParamScheduler]) -> dict[str, Schedule]:
    """Return native schedules, which step by epochs, by iterations or on a metric."""
    return {
        str(index): Schedule(
            scheduler,  # type: ignore[arg-type]
            "1 epoch" if scheduler.by_epoch else 1,
            metric=f"val/{scheduler.monitor}" if scheduler.need_val_args else None,  # type: ignore[attr-defined]
        )
        for index, scheduler in enumerate(schedulers)
    }
