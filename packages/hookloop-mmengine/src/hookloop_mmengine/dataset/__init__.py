"""``mmengine.dataset``: datasets, samplers and collate functions."""

from __future__ import annotations

from typing import NoReturn

from hookloop_mmengine.dataset.base_dataset import BaseDataset, force_full_init
from hookloop_mmengine.dataset.collate import (
    default_collate,
    pseudo_collate,
    worker_init_fn,
)
from hookloop_mmengine.dataset.compose import Compose
from hookloop_mmengine.dataset.dataset_wrapper import (
    ClassBalancedDataset,
    ConcatDataset,
    RepeatDataset,
)
from hookloop_mmengine.dataset.sampler import DefaultSampler, InfiniteSampler
from hookloop_mmengine.missing import reject
from hookloop_mmengine.registry import FUNCTIONS as COLLATE_FUNCTIONS

__all__ = [
    "COLLATE_FUNCTIONS",
    "BaseDataset",
    "ClassBalancedDataset",
    "Compose",
    "ConcatDataset",
    "DefaultSampler",
    "InfiniteSampler",
    "RepeatDataset",
    "default_collate",
    "force_full_init",
    "pseudo_collate",
    "worker_init_fn",
]


def __getattr__(name: str) -> NoReturn:
    reject(__name__, name)
