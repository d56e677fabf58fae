"""``mmengine.runner``: the runner, on top of hookloop's `Trainer`."""

from __future__ import annotations

from typing import NoReturn

from hookloop.dialects.mmengine.loops import (
    EpochBasedTrainLoop,
    IterBasedTrainLoop,
    TestLoop,
    ValLoop,
)
from hookloop.dialects.mmengine.missing import reject
from hookloop.dialects.mmengine.runner.amp import autocast
from hookloop.dialects.mmengine.runner.checkpoint import (
    CheckpointLoader,
    find_latest_checkpoint,
    get_state_dict,
    load_checkpoint,
    load_state_dict,
    save_checkpoint,
    weights_to_cpu,
)
from hookloop.dialects.mmengine.runner.log_processor import LogProcessor
from hookloop.dialects.mmengine.runner.loops import BaseLoop
from hookloop.dialects.mmengine.runner.priority import Priority, get_priority
from hookloop.dialects.mmengine.runner.runner import Runner
from hookloop.dialects.mmengine.runner.seed import set_random_seed

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
