"""``mmengine.hooks.RuntimeInfoHook``: the state of the run, in the message hub."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from hookloop_mmengine.checkpoint_view import VERSION
from hookloop_mmengine.hooks.hook import DATA_BATCH, Hook

if TYPE_CHECKING:
    from hookloop_mmengine.facade import RunnerFacade


class RuntimeInfoHook(Hook):
    """Put counters, learning rates, losses and metrics into the message hub."""

    priority = "VERY_HIGH"

    def before_run(self, runner: RunnerFacade) -> None:
        hub = runner.message_hub
        hub.update_info("cfg", getattr(runner.cfg, "pretty_text", ""))
        hub.update_info("seed", runner.seed)
        hub.update_info("experiment_name", runner.experiment_name)
        hub.update_info("mmengine_version", VERSION)

    def before_train(self, runner: RunnerFacade) -> None:
        hub = runner.message_hub
        hub.update_info("loop_stage", "train")
        hub.update_info("epoch", runner.epoch)
        hub.update_info("iter", runner.iter)
        hub.update_info("max_epochs", runner.max_epochs)
        hub.update_info("max_iters", runner.max_iters)
        dataset = getattr(runner.train_dataloader, "dataset", None)
        meta = getattr(dataset, "metainfo", None)
        if meta is not None:
            hub.update_info("dataset_meta", meta)

    def after_train(self, runner: RunnerFacade) -> None:
        runner.message_hub.pop_info("loop_stage")

    def before_train_epoch(self, runner: RunnerFacade) -> None:
        runner.message_hub.update_info("epoch", runner.epoch)

    def before_train_iter(
        self, runner: RunnerFacade, batch_idx: int, data_batch: DATA_BATCH = None
    ) -> None:
        hub = runner.message_hub
        hub.update_info("iter", runner.iter)
        for name, rates in runner.optim_wrapper.get_lr().items():  # type: ignore[attr-defined]
            # The first group stands for all of them, as in MMEngine.
            hub.update_scalar(f"train/{name}", rates[0])

    def after_train_iter(
        self,
        runner: RunnerFacade,
        batch_idx: int,
        data_batch: DATA_BATCH = None,
        outputs: dict[str, object] | None = None,
    ) -> None:
        for name, value in (outputs or {}).items():
            # The hub rejects what is not a scalar, and a model may return anything.
            if _is_scalar(value):
                runner.message_hub.update_scalar(f"train/{name}", value)  # type: ignore[arg-type]

    def before_val(self, runner: RunnerFacade) -> None:
        # A validation inside a training hands the stage back; one on its own leaves none.
        self._stage = runner.message_hub.get_info("loop_stage")
        runner.message_hub.update_info("loop_stage", "val")

    def after_val(self, runner: RunnerFacade) -> None:
        runner.message_hub.pop_info("loop_stage")
        if self._stage == "train":
            runner.message_hub.update_info("loop_stage", self._stage)

    def after_val_epoch(
        self, runner: RunnerFacade, metrics: Mapping[str, object] | None = None
    ) -> None:
        self._put_metrics(runner, "val", metrics)

    def before_test(self, runner: RunnerFacade) -> None:
        runner.message_hub.update_info("loop_stage", "test")

    def after_test(self, runner: RunnerFacade) -> None:
        runner.message_hub.pop_info("loop_stage")

    def after_test_epoch(
        self, runner: RunnerFacade, metrics: Mapping[str, object] | None = None
    ) -> None:
        self._put_metrics(runner, "test", metrics)

    def _put_metrics(
        self, runner: RunnerFacade, mode: str, metrics: Mapping[str, object] | None
    ) -> None:
        for name, value in (metrics or {}).items():
            if _is_scalar(value):
                runner.message_hub.update_scalar(f"{mode}/{name}", value)  # type: ignore[arg-type]
            else:
                runner.message_hub.update_info(f"{mode}/{name}", value)


def _is_scalar(value: object) -> bool:
    if isinstance(value, Tensor):
        return value.numel() == 1
    if isinstance(value, np.ndarray):
        return value.size == 1
    return isinstance(value, int | float | np.number)
