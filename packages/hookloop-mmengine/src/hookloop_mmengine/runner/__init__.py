"""``mmengine.runner``: the runner, on top of hookloop's `Trainer`."""

from __future__ import annotations

from typing import NoReturn

from hookloop_mmengine.loops import (
    EpochBasedTrainLoop,
    IterBasedTrainLoop,
    TestLoop,
    ValLoop,
)
from hookloop_mmengine.missing import reject
from hookloop_mmengine.runner.amp import autocast
from hookloop_mmengine.runner.checkpoint import (
    CheckpointLoader,
    find_latest_checkpoint,
    get_state_dict,
    load_checkpoint,
    load_state_dict,
    save_checkpoint,
    weights_to_cpu,
)
from hookloop_mmengine.runner.log_processor import LogProcessor
from hookloop_mmengine.runner.loops import BaseLoop
from hookloop_mmengine.runner.priority import Priority, get_priority
from hookloop_mmengine.runner.runner import Runner
from hookloop_mmengine.runner.seed import set_random_seed

__all__ = [
    "BaseLoop",
    "CheckpointLoader",
    "EpochBasedTrainLoop",
    "IterBasedTrainLoop",
    "LogProcessor",
    "Priority",
    "Runner",
    "TestLoop",
    "ValLoop",
    "autocast",
    "find_latest_checkpoint",
    "get_priority",
    "get_state_dict",
    "load_checkpoint",
    "load_state_dict",
    "save_checkpoint",
    "set_random_seed",
    "weights_to_cpu",
]


def __getattr__(name: str) -> NoReturn:
    reject(__name__, name)
