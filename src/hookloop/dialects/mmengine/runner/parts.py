"""From the runner's config dicts to objects: loaders, optimizer, schedulers, loops' settings."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import cast

from torch import nn
from torch.utils.data import DataLoader, Dataset

from hookloop.core.lr_schedule import Schedule
from hookloop.dialects.mmengine.dataset import pseudo_collate, worker_init_fn
from hookloop.dialects.mmengine.dist import get_rank
from hookloop.dialects.mmengine.optim import OptimWrapper, OptimWrapperDict, build_optim_wrapper
from hookloop.dialects.mmengine.optim.scheduler import _ParamScheduler
from hookloop.dialects.mmengine.registry import (
    DATA_SAMPLERS,
    DATASETS,
    FUNCTIONS,
    OPTIM_WRAPPERS,
    PARAM_SCHEDULERS,
)
from hookloop.errors import nearest

Described = Mapping[str, object]


@dataclass(frozen=True)
class LoopSettings:
    """What ``train_cfg`` says."""

    by_epoch: bool
    limit: int
    val_interval: int
    val_begin: int
    dynamic_intervals: list[tuple[int, int]] = field(default_factory=list)


LOOPS = ("EpochBasedTrainLoop", "IterBasedTrainLoop")


def read_train_cfg(cfg: Described) -> LoopSettings:
    """Read ``train_cfg``: by ``type`` or ``by_epoch``."""
    said = dict(cfg)
    kind = said.pop("type", None)
    if kind is not None and kind not in LOOPS:
        raise ValueError(
            f"train_cfg: the loop '{kind}' is not offered.{nearest(str(kind), LOOPS)} hookloop "
            f"drives the training itself: {' or '.join(LOOPS)}; what a loop of your own does "
            "besides goes into a hook."
        )
    by_epoch = said.pop("by_epoch", None)
    is_epoch_based = kind == "EpochBasedTrainLoop" if kind else by_epoch is not False
    limit = said.pop("max_epochs" if is_epoch_based else "max_iters", None)
    if not isinstance(limit, int):
        wanted = "max_epochs" if is_epoch_based else "max_iters"
        raise ValueError(f"train_cfg needs {wanted}, a whole number, not {limit!r}.")
    settings = LoopSettings(
        is_epoch_based,
        limit,
        cast("int", said.pop("val_interval", 1 if is_epoch_based else 1000)),
        cast("int", said.pop("val_begin", 1)),
        [
            (int(m), int(i))
            for m, i in cast("list[tuple[int, int]]", said.pop("dynamic_intervals", None) or [])
        ],
    )
    if said:
        raise TypeError(f"train_cfg does not take {', '.join(said)}.")
    return settings


def build_dataloader(
    dataloader: DataLoader[object] | Described,
    seed: int | None = None,
    diff_rank_seed: bool = False,
) -> DataLoader[object]:
    """Build a loader; an object is returned as it is."""
    if not isinstance(dataloader, Mapping):
        return dataloader
    options = copy.copy(dict(dataloader))
    options.pop("num_batch_per_epoch", None)
    dataset = options.pop("dataset")
    if isinstance(dataset, Mapping):
        dataset = DATASETS.build(dataset)
        init = getattr(dataset, "full_init", None)
        if callable(init):
            init()
    built = cast("Dataset[object]", dataset)
    sampler = options.pop("sampler", None)
    own_seed = None if diff_rank_seed else seed
    if isinstance(sampler, Mapping):
        sampler = DATA_SAMPLERS.build({"dataset": built, "seed": own_seed, **sampler})
    batches = options.pop("batch_sampler", None)
    if isinstance(batches, Mapping):
        described = {"sampler": sampler, "batch_size": options.pop("batch_size"), **batches}
        batches = DATA_SAMPLERS.build(described)
    if batches is not None:
        sampler = None
    options["worker_init_fn"] = _worker_init(options, seed)
    options["collate_fn"] = _collate(options.pop("collate_fn", None))
    return DataLoader(built, sampler=sampler, batch_sampler=batches, **options)  # type: ignore[arg-type]


def _worker_init(options: dict[str, object], seed: int | None) -> Callable[..., None] | None:
    said = options.pop("worker_init_fn", None)
    if callable(said):
        return cast("Callable[..., None]", said)
    if seed is None:
        return None
    workers = cast("int", options.get("num_workers", 0))
    return partial(worker_init_fn, num_workers=workers, rank=get_rank(), seed=seed)


def _collate(said: object) -> Callable[..., object]:
    if said is None:
        return pseudo_collate
    if callable(said):
        return cast("Callable[..., object]", said)
    from hookloop.dialects.mmengine import dataset

    options = dict(cast("Described", said))
    kind = options.pop("type")
    found = FUNCTIONS.get(kind) or getattr(dataset, kind, None) if isinstance(kind, str) else kind
    if not callable(found):
        raise KeyError(f"collate_fn: there is no function '{kind}'.")
    return partial(found, **options)


def build_wrapper(optim_wrapper: OptimWrapper | Described, model: nn.Module) -> OptimWrapper:
    """Build the optimizer wrapper; with ``constructor``-less dicts by name, several."""
    if isinstance(optim_wrapper, OptimWrapper):
        return optim_wrapper
    if not isinstance(optim_wrapper, Mapping):
        raise TypeError(f"optim_wrapper should be an OptimWrapper or a dict, not {optim_wrapper!r}")
    if "optimizer" in optim_wrapper or "constructor" in optim_wrapper or "type" in optim_wrapper:
        optimizer = optim_wrapper.get("optimizer")
        if isinstance(optimizer, Mapping) or "constructor" in optim_wrapper:
            return build_optim_wrapper(model, optim_wrapper)
        return cast("OptimWrapper", OPTIM_WRAPPERS.build({"type": "OptimWrapper", **optim_wrapper}))
    several = dict(cast("Mapping[str, OptimWrapper]", optim_wrapper))
    if not all(isinstance(one, OptimWrapper) for one in several.values()):
        raise ValueError("several optim_wrappers are given as objects, by name.")
    return OptimWrapperDict(**several)


def build_schedulers(
    described: object, optimizer: object, settings: LoopSettings, epoch_length: int | None
) -> list[_ParamScheduler]:
    """Build the schedulers of one optimizer; ``end`` is the end of the training by default."""
    listed = described if isinstance(described, Sequence) else [described]
    built: list[_ParamScheduler] = []
    for one in listed:
        if isinstance(one, Mapping):
            options = dict(one)
            by_epoch = options.setdefault("by_epoch", True)
            if by_epoch == settings.by_epoch:
                options.setdefault("end", settings.limit)
            elif not by_epoch and epoch_length:
                options.setdefault("end", settings.limit * epoch_length)
            elif by_epoch:  # A training by iterations counts as one epoch.
                options.setdefault("end", 1)
            scheduler = PARAM_SCHEDULERS.build(
                options, default_args={"optimizer": optimizer, "epoch_length": epoch_length}
            )
            built.append(cast("_ParamScheduler", scheduler))
        elif isinstance(one, _ParamScheduler):
            built.append(one)
        else:
            raise TypeError(f"scheduler should be a `_ParamScheduler` or dict, but got {one!r}")
    return built


def as_schedules(schedulers: Sequence[_ParamScheduler]) -> dict[str, Schedule]:
    """Let hookloop step them, each by its own clock."""
    return {
        str(place): Schedule(
            one,  # type: ignore[arg-type]
            "1 epoch" if one.by_epoch else 1,
            metric=f"val/{one.monitor}" if one.need_val_args else None,  # type: ignore[attr-defined]
        )
        for place, one in enumerate(schedulers)
    }
