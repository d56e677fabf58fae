"""``classy_vision.tasks.classy_task``: the task that hooks get."""

from __future__ import annotations

from hookloop_dialects.vissl.task import Task as ClassyTask

__all__ = ["ClassyTask"]
