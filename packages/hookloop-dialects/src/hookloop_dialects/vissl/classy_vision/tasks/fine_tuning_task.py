"""``classy_vision.tasks.fine_tuning_task``: the task that hooks get."""

from __future__ import annotations

from hookloop_dialects.vissl.task import Task as FineTuningTask

__all__ = ["FineTuningTask"]
