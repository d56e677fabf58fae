"""The names that files import from ``classy_vision.tasks`` for their annotations."""

from __future__ import annotations

from hookloop.dialects.vissl.task import Task as ClassyTask

ClassificationTask = ClassyTask

__all__ = ["ClassificationTask", "ClassyTask"]
