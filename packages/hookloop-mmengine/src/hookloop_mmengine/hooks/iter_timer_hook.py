"""``mmengine.hooks.IterTimerHook``: the time per iteration and the time that remains."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from hookloop.dialects import length_of
from hookloop_mmengine.hooks.hook import DATA_BATCH, Hook

if TYPE_CHECKING:
    from hookloop_mmengine.facade import RunnerFacade


class IterTimerHook(Hook):
    """Put the times of iterations and of their data, and the remaining time, into the hub."""

    priority = "NORMAL"

    # Subclasses in other projects use these names, so they are MMEngine's.
    def __init__(self) -> None:
        self.t = perf_counter()
        self.time_sec_tot = 0.0
        self.time_sec_test_val = 0.0
        self.start_iter = 0

    def before_train(self, runner: RunnerFacade) -> None:
        self.start_iter = runner.iter
        self.time_sec_tot = 0.0

    def _before_epoch(self, runner: RunnerFacade, mode: str = "train") -> None:
        self.t = perf_counter()
        self.time_sec_test_val = 0.0

    def _before_iter(
        self,
        runner: RunnerFacade,
        batch_idx: int,
        data_batch: DATA_BATCH = None,
        mode: str = "train",
    ) -> None:
        runner.message_hub.update_scalar(f"{mode}/data_time", perf_counter() - self.t)

    def _after_iter(
        self,
        runner: RunnerFacade,
        batch_idx: int,
        data_batch: DATA_BATCH = None,
        outputs: object = None,
        mode: str = "train",
    ) -> None:
        now = perf_counter()
        elapsed, self.t = now - self.t, now
        hub = runner.message_hub
        hub.update_scalar(f"{mode}/time", elapsed)
        if mode == "train":
            self.time_sec_tot += elapsed
            # Of this run only: a resumed run may be on another machine.
            mean = self.time_sec_tot / (runner.iter - self.start_iter + 1)
            hub.update_info("eta", mean * (runner.max_iters - runner.iter - 1))
        else:
            self.time_sec_test_val += elapsed
            mean = self.time_sec_test_val / (batch_idx + 1)
            data = getattr(runner, f"{mode}_dataloader")
            # A loader over an iterable dataset has no length.
            length = length_of(data)
            left = 0 if length is None else length - batch_idx - 1
            hub.update_info("eta", mean * left)
