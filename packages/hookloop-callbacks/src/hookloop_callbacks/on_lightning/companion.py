"""What Lightning's loop does beyond ours: counters of batches, and events between our points.

`LightningCompanion` acts before the callbacks, `CloseEpoch` after them and before the writers, and
`EndBatch` after the schedules have stepped, as they have in Lightning when a batch ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hookloop import Hook, Priority
from hookloop.dialects import (
    Companion,
    internals_of,
)
from hookloop_callbacks.on_lightning.points import (
    BATCH_END,
    BATCH_START,
    EPOCH_END,
    FIT_END,
    FIT_START,
    PREDICT_START,
    TEST_START,
    VAL_START,
)

if TYPE_CHECKING:
    from torch import Tensor

    from hookloop import Run
    from hookloop_callbacks.on_lightning.logged import Logged


@dataclass
class Place:
    """Which batch of an evaluation is current."""

    stream: str | None = None
    dataloader_idx: int = -1
    batch_idx: int = -1
    has_several: bool = False

    @property
    def arguments(self) -> tuple[int, ...]:
        """What a callback is given: the index of the data only if there are several."""
        return (self.batch_idx, self.dataloader_idx) if self.has_several else (self.batch_idx,)


class LightningCompanion(Companion):
    """Count epochs and batches as Lightning does, and fire its further events.

    Attributes:
        epoch_offset: What Lightning's counter of epochs has more than ours.
        microbatch: Index of the current batch within its update.
        last_batch: The batch before the current one of an update, and its index in the epoch.
        loss: The loss of the current batch of an update; after the last one, the run's is the
            whole update's.
        place: The current batch of an evaluation.
        in_iteration: Whether a training iteration is under way.
        behind: 1 while the end of a batch is announced, whose step Lightning has not counted yet.
    """

    name = "dialect:lightning"

    def __init__(self) -> None:
        self.epoch_offset = 0
        self.microbatch = 0
        self.last_batch: tuple[object, int] = (None, -1)
        self.loss: Tensor | None = None
        self.place = Place()
        self.in_iteration = False
        self.behind = 0
        self._is_fitting = False
        self._is_epoch_open = False

    def prepare(self, run: Run) -> None:
        """Count the batches of updates that have several; others are spared the calls."""
        if run.accumulate > 1:
            # On the instance, so that a plan without accumulation has no call there.
            self.before_forward = self._count_batch  # type: ignore[method-assign]
            self.after_loss = self._keep_loss  # type: ignore[method-assign]

    def batch_idx(self, run: Run) -> int:
        """Return the index of the batch in its epoch."""
        return run.progress.iter_in_epoch * run.accumulate + self.microbatch

    def before_run(self, run: Run) -> None:
        self.epoch_offset = 0
        self.in_iteration = self._is_fitting = self._is_epoch_open = False

    def before_train(self, run: Run) -> None:
        self._is_fitting = True
        run.fire(FIT_START.name)

    def before_train_epoch(self, run: Run) -> None:
        self._is_epoch_open = True
        self.epoch_offset = 0

    def before_train_iter(self, run: Run) -> None:
        self.in_iteration = True
        self.microbatch = 0
        self.last_batch = (None, -1)

    def _count_batch(self, run: Run) -> None:
        if run.phase != "train":
            return
        # With one optimizer after the other, only the first one's batches are Lightning's.
        if self.last_batch[1] >= 0 and self.microbatch < run.accumulate - 1:
            run.fire(BATCH_END.name)
            self.microbatch += 1
            run.fire(BATCH_START.name)
        self.last_batch = (run.batch, self.batch_idx(run))

    def _keep_loss(self, run: Run) -> None:
        if run.phase == "train":
            self.loss = run.loss

    def before_val_epoch(self, run: Run) -> None:
        self.place = Place(has_several=len(run.val_data) > 1)
        run.fire(VAL_START.name)

    def before_test_epoch(self, run: Run) -> None:
        self.place = Place(has_several=len(internals_of(run).test_data) > 1)
        run.fire(TEST_START.name)

    def before_predict_epoch(self, run: Run) -> None:
        self.place = Place(has_several=len(internals_of(run).predict_data) > 1)
        run.fire(PREDICT_START.name)

    def before_val_iter(self, run: Run) -> None:
        place = self.place
        if run.stream != place.stream:
            place.stream = run.stream
            place.dataloader_idx += 1
            place.batch_idx = -1
        place.batch_idx += 1

    before_test_iter = before_predict_iter = before_val_iter

    def after_epoch(self, run: Run) -> None:
        self._is_epoch_open = False
        self.epoch_offset = -1  # Lightning counts an epoch after its last callback.

    def after_epoch_profile(self, run: Run) -> None:
        self.epoch_offset = 0

    def after_train(self, run: Run) -> None:
        # A run that a signal ended continues with this epoch when it is resumed.
        if self._is_epoch_open and not run.is_interrupted:
            run.fire(EPOCH_END.name)
            # An epoch that was cut short counts in Lightning.
            self.epoch_offset = int(run.progress.stage == "inside")
        self._is_epoch_open = False

    def after_run(self, run: Run) -> None:
        if self._is_fitting and run.outcome.status != "failed":
            run.fire(FIT_END.name)


class EndBatch(Hook):
    """Fire the end of an update's last batch.

    Args:
        companion: Keeps the batch.
    """

    name = "dialect:lightning:batch"
    priority = int(Priority.LOW) + 2
    draws_random_numbers = False

    def __init__(self, companion: LightningCompanion) -> None:
        self._companion = companion

    def after_train_iter(self, run: Run) -> None:
        companion = self._companion
        # `run.progress` counts this iteration already.
        earlier = (run.progress.iter_in_epoch - 1) * run.accumulate
        companion.last_batch = (run.batch, earlier + companion.microbatch)
        companion.behind = 1
        run.fire(BATCH_END.name)
        companion.behind = 0
        companion.in_iteration = False


class CloseEpoch(Hook):
    """Put what callbacks log for a whole epoch into the metric store when the epoch ends.

    Args:
        logged: What callbacks log.
    """

    name = "dialect:lightning:log"
    priority = int(Priority.NORMAL) + 5
    draws_random_numbers = False

    def __init__(self, logged: Logged) -> None:
        self._logged = logged

    def after_val_epoch(self, run: Run, metrics: Mapping[str, float]) -> None:
        self._logged.close_epoch("val")

    def after_test_epoch(self, run: Run, metrics: Mapping[str, float]) -> None:
        self._logged.close_epoch("test")

    def after_epoch(self, run: Run) -> None:
        self._logged.close_epoch("train")

    def after_train(self, run: Run) -> None:
        self._logged.close_epoch("train")
