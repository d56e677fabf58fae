"""``vissl.trainer.train_task``: the name that files import for their annotations."""

from __future__ import annotations

from hookloop_dialects.vissl.task import Task as SelfSupervisionTask

__all__ = ["SelfSupervisionTask"]
