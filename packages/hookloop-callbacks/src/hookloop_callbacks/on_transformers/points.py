"""The mount points that Transformers has and the engine does not; the companion fires them."""

from __future__ import annotations

from hookloop import Point

STEP_END = Point("on_transformers_step_end", "an update is done and the schedules have stepped")
SUBSTEP_END = Point("on_transformers_substep_end", "a batch is done, its update is not")
EPOCH_END = Point("on_transformers_epoch_end", "the training stopped within an epoch")
LOG = Point("on_transformers_log", "numbers are logged", args=("logs",))

POINTS = (STEP_END, SUBSTEP_END, EPOCH_END, LOG)
