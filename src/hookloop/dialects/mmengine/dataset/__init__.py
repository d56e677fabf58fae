"""``mmengine.dataset``: samplers, collate functions and wrapped datasets."""

from __future__ import annotations

from typing import NoReturn

from hookloop.dialects.mmengine.dataset.collate import (
    default_collate,
    pseudo_collate,
    worker_init_fn,
)
from hookloop.dialects.mmengine.dataset.compose import Compose, ConcatDataset, RepeatDataset
from hookloop.dialects.mmengine.dataset.sampler import DefaultSampler, InfiniteSampler
from hookloop.dialects.mmengine.missing import reject

__all__ = [
    "Compose",
    "ConcatDataset",
    "DefaultSampler",
    "InfiniteSampler",
    "RepeatDataset",
    "default_collate",
    "pseudo_collate",
    "worker_init_fn",
]


def __getattr__(name: str) -> NoReturn:
    reject(__name__, name)
