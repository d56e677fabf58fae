"""``mmengine.dataset``: datasets, samplers and collate functions."""

from __future__ import annotations

from typing import NoReturn

from hookloop_mmengine.dataset.collate import (
    default_collate,
    pseudo_collate,
    worker_init_fn,
)
from hookloop_mmengine.dataset.sampler import DefaultSampler, InfiniteSampler
from hookloop_mmengine.missing import reject
from hookloop_mmengine.registry import FUNCTIONS as COLLATE_FUNCTIONS

__all__ = [
    "COLLATE_FUNCTIONS",
    "DefaultSampler",
    "InfiniteSampler",
    "default_collate",
    "pseudo_collate",
    "worker_init_fn",
]


def __getattr__(name: str) -> NoReturn:
    reject(__name__, name)
