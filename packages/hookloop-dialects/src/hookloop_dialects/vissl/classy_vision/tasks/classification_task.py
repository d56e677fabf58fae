"""``classy_vision.tasks.classification_task``: the task that hooks get, and what describes it."""

from __future__ import annotations

from enum import Enum, auto
from typing import Any, NamedTuple

from hookloop_dialects.vissl.task import Task as ClassificationTask

__all__ = [
    "AmpType",
    "BroadcastBuffersMode",
    "ClassificationTask",
    "LastBatchInfo",
]


class AmpType(Enum):
    """How a task computes in half precision; here ``task.amp_type`` is None."""

    APEX = auto()
    PYTORCH = auto()


class BroadcastBuffersMode(Enum):
    """When processes take over the buffers of the first one."""

    DISABLED = auto()
    FORWARD_PASS = auto()
    BEFORE_EVAL = auto()


class LastBatchInfo(NamedTuple):
    """A batch as files make it themselves; ``task.last_batch`` has the same attributes."""

    loss: Any
    output: Any
    target: Any
    sample: dict[str, Any]
    step_data: dict[str, Any] | None = None
