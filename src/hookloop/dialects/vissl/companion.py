"""`VisslCompanion`: count phases and batches as VISSL does."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import TYPE_CHECKING, cast

from torch import Tensor

from hookloop.dialects.companion import Companion
from hookloop.dialects.waiting import Waiting

if TYPE_CHECKING:
    from hookloop.core.run import Run


class VisslCompanion(Companion):
    """Count phases and batches, and keep the losses of a phase.

    Attributes:
        phase_idx: Index of the current phase; -1 before the first.
        train_phase_idx: Index of the current or last train phase.
        is_training: Whether this run trains.
        batch_time: Seconds of each training iteration of the phase.
    """

    name = "dialect:vissl"

    def __init__(self) -> None:
        self.phase_idx = -1
        self.train_phase_idx = -1
        self.is_training = False
        self.batch_time: list[float] = []
        self._local = -1  # VISSL starts here, and adds 1 at the start of each phase.
        self._first = 0  # The iteration in which the current phase began.
        self._losses: list[float] = []
        self._waiting = Waiting()
        self._sizes: list[int] = []
        self._began = 0.0

    def state_dict(self) -> dict[str, object]:
        # Batches since the start of the phase follow from the engine's own counter.
        return {
            "phase_idx": self.phase_idx,
            "train_phase_idx": self.train_phase_idx,
            "local": self._local,
            "first": self._first,
        }

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        self.phase_idx = cast("int", state["phase_idx"])
        self.train_phase_idx = cast("int", state["train_phase_idx"])
        self._local = cast("int", state["local"])
        self._first = cast("int", state["first"])

    def local_iteration(self, run: Run) -> int:
        """Return the batches of all phases, plus one for each phase but the first."""
        # Computed from the engine's counter, so that a training iteration costs nothing.
        within = run.progress.iter - self._first if run.phase == "train" else 0
        return self._local + max(0, within)

    @property
    def losses(self) -> list[float]:
        """The loss of each batch of the phase, multiplied by its samples."""
        self._read()
        return self._losses

    def reset_losses(self, losses: list[float]) -> None:
        """Replace the list of losses."""
        self._waiting, self._sizes = Waiting(), []
        self._losses = list(losses)

    def before_run(self, run: Run) -> None:
        self.is_training = False

    def before_train(self, run: Run) -> None:
        self.is_training = True

    def before_train_epoch(self, run: Run) -> None:
        # A phase that is resumed in the middle was counted before its checkpoint.
        if run.progress.iter_in_epoch == 0:
            self.train_phase_idx += 1
            self._start_phase(run)

    def before_val_epoch(self, run: Run) -> None:
        self._start_phase(run)

    before_test_epoch = before_val_epoch

    def before_train_iter(self, run: Run) -> None:
        self._mark()

    def after_loss(self, run: Run) -> None:
        if run.loss is None:
            return
        batch = run.batch
        first = batch[0] if type(batch) is tuple or type(batch) is list else None
        # The common forms directly, at a fifth of the cost of run.batch_size.
        self._sizes.append(first.shape[0] if type(first) is Tensor else run.batch_size)
        if self._waiting.add(run.loss if run.loss.ndim == 0 else run.loss.mean()):
            self._read()

    def after_train_epoch(self, run: Run) -> None:
        self._mark()

    # The engine has no counter of evaluated batches, so these are counted one by one.
    def after_val_iter(self, run: Run) -> None:
        self._local += 1

    after_test_iter = after_val_iter

    def _mark(self) -> None:
        """Record the time since the last batch began."""
        now = perf_counter()
        if self._began:
            self.batch_time.append(now - self._began)
        self._began = now

    def _start_phase(self, run: Run) -> None:
        self.phase_idx += 1
        # Adds the training batches since the last phase; from here they are counted again.
        self._local += run.progress.iter - self._first + 1
        self._first = run.progress.iter
        self.batch_time = []
        self._began = 0.0  # The time between two phases is not a batch's.
        self.reset_losses([])

    def _read(self) -> None:
        """Read the losses that wait on the device, in one copy."""
        sizes, self._sizes = self._sizes, []
        losses = self._waiting.read()
        self._losses += [loss * size for loss, size in zip(losses, sizes, strict=True)]
