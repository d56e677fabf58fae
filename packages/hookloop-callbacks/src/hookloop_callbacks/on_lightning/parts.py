"""Small parts of Lightning's trainer that callbacks ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from hookloop.dialects import internals_of
from hookloop_callbacks.on_lightning.states import RunningStage, TrainerFn, TrainerStatus

if TYPE_CHECKING:
    from hookloop import Run, Schedule
    from hookloop_callbacks.on_lightning.trainer import TrainerFacade

FUNCTIONS = {
    "train": TrainerFn.FITTING,
    "val": TrainerFn.VALIDATING,
    "test": TrainerFn.TESTING,
    "predict": TrainerFn.PREDICTING,
}
STAGES = {
    "train": RunningStage.TRAINING,
    "val": RunningStage.VALIDATING,
    "test": RunningStage.TESTING,
    "predict": RunningStage.PREDICTING,
}
STATUS = {
    "running": TrainerStatus.RUNNING,
    "completed": TrainerStatus.FINISHED,
    "stopped": TrainerStatus.FINISHED,
}


@dataclass(frozen=True)
class State:
    """``trainer.state``: what was called, and what is under way."""

    run: Run

    @property
    def fn(self) -> TrainerFn:
        """``fit``, ``validate``, ``test`` or ``predict``."""
        return FUNCTIONS[internals_of(self.run).purpose]

    @property
    def stage(self) -> RunningStage:
        """``train``, ``validate``, ``test`` or ``predict``."""
        purpose = internals_of(self.run).purpose
        return STAGES[self.run.phase if purpose == "train" else purpose]

    @property
    def status(self) -> TrainerStatus:
        """``running``, ``finished`` or ``interrupted``."""
        return STATUS.get(self.run.outcome.status, TrainerStatus.INTERRUPTED)


@dataclass(frozen=True)
class SchedulerConfig:
    """One of ``trainer.lr_scheduler_configs``."""

    schedule: Schedule
    name: str | None = None
    reduce_on_plateau: bool = False
    strict: bool = True

    @property
    def scheduler(self) -> Any:  # noqa: ANN401 - one of torch's
        """The scheduler itself."""
        return self.schedule.scheduler

    @property
    def interval(self) -> str:
        """``step`` or ``epoch``."""
        return "epoch" if self.schedule.every.unit == "epochs" else "step"

    @property
    def frequency(self) -> int:
        """Every how many of them it steps."""
        return int(self.schedule.every.count)

    @property
    def monitor(self) -> str | None:
        """What it looks at, if anything."""
        return self.schedule.metric


class Strategy:
    """``trainer.strategy``: the connection to the other ranks.

    Args:
        run: The run.
    """

    def __init__(self, run: Run) -> None:
        self._run = run

    @property
    def root_device(self) -> torch.device:
        """The device of the model."""
        return self._run.device

    @property
    def model(self) -> torch.nn.Module:
        """The model."""
        return self._run.model

    @property
    def is_global_zero(self) -> bool:
        """Whether this is the first rank."""
        return self._run.world.is_main

    def barrier(self, name: str | None = None) -> None:
        """Wait for the other ranks."""
        self._run.gather(None)

    def broadcast(self, obj: Any, src: int = 0) -> Any:  # noqa: ANN401 - anything
        """Return the object of one rank on all of them."""
        return self._run.gather(obj)[src]

    def reduce(self, tensor: Any, group: object = None, reduce_op: str = "mean") -> Any:  # noqa: ANN401
        """Return sum or mean over all ranks."""
        how = "sum" if str(reduce_op).lower() == "sum" else "mean"
        return self._run.reduce(tensor, how)  # type: ignore[arg-type]

    def reduce_boolean_decision(self, decision: bool, all: bool = True) -> bool:
        """Return whether all ranks, or any, decided so."""
        decisions = self._run.gather(bool(decision))
        return min(decisions) if all else max(decisions)


@dataclass(frozen=True)
class EpochLoop:
    """``trainer.fit_loop.epoch_loop``."""

    trainer: TrainerFacade

    @property
    def global_step(self) -> int:
        """Updates done."""
        return self.trainer.global_step

    @property
    def _batches_that_stepped(self) -> int:
        # Lightning counts an update after the callbacks of its last batch.
        return self.trainer.global_step - self.trainer.companion.behind

    @property
    def run(self) -> Run:
        """The run."""
        return self.trainer.run

    @property
    def batch_idx(self) -> int:
        """Index of the batch in its epoch."""
        return self.trainer.companion.batch_idx(self.run)


@dataclass(frozen=True)
class FitLoop:
    """``trainer.fit_loop``."""

    trainer: TrainerFacade

    @property
    def epoch_loop(self) -> EpochLoop:
        """The loop over an epoch."""
        return EpochLoop(self.trainer)

    @property
    def max_epochs(self) -> int | None:
        """Epochs to train."""
        return self.trainer.max_epochs

    @property
    def max_steps(self) -> int:
        """Updates to make; -1 for no limit."""
        return self.trainer.max_steps


@dataclass(frozen=True)
class LoggerConnector:
    """``trainer._logger_connector``, which Lightning's own callbacks ask when to log."""

    trainer: TrainerFacade

    @property
    def should_update_logs(self) -> bool:
        """Whether the current step is one of those that are logged."""
        steps = self.trainer.fit_loop.epoch_loop._batches_that_stepped + 1
        return steps % self.trainer.log_every_n_steps == 0


class Accelerator:
    """``trainer.accelerator``."""

    def get_device_stats(self, device: torch.device) -> dict[str, Any]:
        """Return figures of a device: the memory of a GPU."""
        return dict(torch.cuda.memory_stats(device)) if device.type == "cuda" else {}
