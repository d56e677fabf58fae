"""The mount points that Lightning has and the engine does not; the companion fires them."""

from __future__ import annotations

from hookloop import Point

FIT_START = Point("on_lightning_fit_start", "training is about to begin")
FIT_END = Point("on_lightning_fit_end", "training and what belongs to it are over")
BATCH_START = Point("on_lightning_batch_start", "a further batch of an update begins")
BATCH_END = Point("on_lightning_batch_end", "a batch is done that is not the last of its update")
EPOCH_END = Point("on_lightning_epoch_end", "the training stopped within an epoch")
VAL_START = Point("on_lightning_val_start", "a validation begins, in evaluation mode")
TEST_START = Point("on_lightning_test_start", "a test begins, in evaluation mode")
PREDICT_START = Point("on_lightning_predict_start", "a prediction begins, in evaluation mode")

POINTS = (
    FIT_START, FIT_END, BATCH_START, BATCH_END, EPOCH_END, VAL_START, TEST_START, PREDICT_START,
)  # fmt: skip
