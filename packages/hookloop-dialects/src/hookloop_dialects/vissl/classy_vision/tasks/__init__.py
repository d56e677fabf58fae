"""The names that files import from ``classy_vision.tasks``, mostly for their annotations."""

from __future__ import annotations

from hookloop_dialects.vissl.classy_vision.tasks.classification_task import ClassificationTask
from hookloop_dialects.vissl.classy_vision.tasks.classy_task import ClassyTask
from hookloop_dialects.vissl.classy_vision.tasks.fine_tuning_task import FineTuningTask

__all__ = ["ClassificationTask", "ClassyTask", "FineTuningTask"]
