"""``mmengine.hooks.IterTimerHook``: how long an iteration takes, and how long all will."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from hookloop.dialects.mmengine.hooks.hook import DATA_BATCH, Hook

if TYPE_CHECKING:
    from hookloop.dialects.mmengine.facade import RunnerFacade


class IterTimerHook(Hook):
    """Put the times of an iteration, of its data, and what remains, into the message hub."""

    priority = "NORMAL"

    def __init__(self) -> None:
        self._since = perf_counter()
        self._total = 0.0
        self._total_in_evaluation = 0.0
        self._start_iter = 0

    def before_train(self, runner: RunnerFacade) -> None:
        self._start_iter = runner.iter
        self._total = 0.0

    def _before_epoch(self, runner: RunnerFacade, mode: str = "train") -> None:
        self._since = perf_counter()
        self._total_in_evaluation = 0.0

    def _before_iter(
        self,
        runner: RunnerFacade,
        batch_idx: int,
        data_batch: DATA_BATCH = None,
        mode: str = "train",
    ) -> None:
        runner.message_hub.update_scalar(f"{mode}/data_time", perf_counter() - self._since)

    def _after_iter(
        self,
        runner: RunnerFacade,
        batch_idx: int,
        data_batch: DATA_BATCH = None,
        outputs: object = None,
        mode: str = "train",
    ) -> None:
        now = perf_counter()
        taken, self._since = now - self._since, now
        hub = runner.message_hub
        hub.update_scalar(f"{mode}/time", taken)
        if mode == "train":
            self._total += taken
            mean = self._total / (runner.iter - self._start_iter + 1)
            hub.update_info("eta", mean * (runner.max_iters - runner.iter - 1))
        else:
            self._total_in_evaluation += taken
            mean = self._total_in_evaluation / (batch_idx + 1)
            data = getattr(runner, f"{mode}_dataloader")
            left = len(data) - batch_idx - 1 if hasattr(data, "__len__") else 0
            hub.update_info("eta", mean * left)
