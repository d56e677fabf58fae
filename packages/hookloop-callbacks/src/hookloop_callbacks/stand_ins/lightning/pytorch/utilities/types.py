"""Types for annotations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

STEP_OUTPUT = Tensor | Mapping[str, Any] | None
EPOCH_OUTPUT = list[Any]
OptimizerLRScheduler = Any
TRAIN_DATALOADERS = Any
EVAL_DATALOADERS = Any
