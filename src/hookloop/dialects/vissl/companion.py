"""`VisslCompanion`: phases and their counters."""

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
    """Counts phases and batches, and keeps the losses of a phase.

    Attributes:
        phase_idx: Which phase this is; -1 before the first.
        train_phase_idx: Which train phase this is, or the last was.
        is_training: Whether something is trained in this run.
        batch_time: Seconds of each training iteration of the phase.
    """

    name = "dialect:vissl"

    def __init__(self) -> None:
        self.phase_idx = -1
        self.train_phase_idx = -1
        self.is_training = False
        self.batch_time: list[float] = []
        self._local = -1
        self._first = 0
        self._losses: list[float] = []
        self._waiting = Waiting()
        self._sizes: list[int] = []
        self._began = 0.0

    def state_dict(self) -> dict[str, object]:
        # Batches since the last border of a phase are in the engine's own counter.
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
        """Return the batches of all phases, and one for each phase but the first."""
        within = run.progress.iter - self._first if run.phase == "train" else 0
        return self._local + max(0, within)

    @property
    def losses(self) -> list[float]:
        """The loss of each batch of the phase, times its samples."""
        self._read()
        return self._losses

    def forget_losses(self, others: list[float]) -> None:
        """Begin the list of losses anew."""
        self._waiting, self._sizes = Waiting(), []
        self._losses = list(others)

    def before_run(self, run: Run) -> None:
        self.is_training = False

    def before_train(self, run: Run) -> None:
        self.is_training = True

    def before_train_epoch(self, run: Run) -> None:
        if run.progress.iter_in_epoch == 0:  # A phase that is resumed was counted before.
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
        # The common forms at a fifth of the cost.
        self._sizes.append(first.shape[0] if type(first) is Tensor else run.batch_size)
        if self._waiting.add(run.loss if run.loss.ndim == 0 else run.loss.mean()):
            self._read()

    def after_train_epoch(self, run: Run) -> None:
        self._mark()

    def after_val_iter(self, run: Run) -> None:
        self._local += 1

    after_test_iter = after_val_iter

    def _mark(self) -> None:
        """Note how long it is since the last batch began."""
        now = perf_counter()
        if self._began:
            self.batch_time.append(now - self._began)
        self._began = now

    def _start_phase(self, run: Run) -> None:
        self.phase_idx += 1
        # The batches of the training so far are folded in; from here on they count anew.
        self._local += run.progress.iter - self._first + 1
        self._first = run.progress.iter
        self.batch_time = []
        self._began = 0.0
        self.forget_losses([])

    def _read(self) -> None:
        """Read the losses that wait on the device, in one go."""
        sizes, self._sizes = self._sizes, []
        self._losses += [one * size for one, size in zip(self._waiting.read(), sizes, strict=True)]
