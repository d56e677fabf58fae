"""`TaskParts`: model, loss, optimizer and meters of a run as hooks of VISSL see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hookloop.dialects import (
    Facade,
    internals_of,
)
from hookloop.errors import HookError
from hookloop_dialects.vissl.classy_vision.meters.registry import meters_of
from hookloop_dialects.vissl.companion import VisslCompanion
from hookloop_dialects.vissl.defaults import DEFAULTS, complete
from hookloop_dialects.vissl.loss_module import loss_module
from hookloop_dialects.vissl.perf_watch import PerfWatch
from hookloop_dialects.vissl.task_config import TaskConfig
from hookloop_dialects.vissl.views import LastBatch, Meter, OptimizerView

if TYPE_CHECKING:
    import torch

    from hookloop import Run
    from hookloop_dialects.vissl.classy_vision.meters.classy_meter import ClassyMeter
    from hookloop_dialects.vissl.utils.perf_stats import PerfStats


class TaskParts(Facade):
    """What the run is made of."""

    role = "task"

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        processes = {"DISTRIBUTED": {"NUM_PROC_PER_NODE": run.world.size}}
        self.config = TaskConfig(complete(run.config, complete(DEFAULTS, processes)))
        self.config.bind(run.model)
        # One object per run: hooks put modules and tensors into it.
        self._loss = loss_module(internals_of(run).loss_function)
        enabled = self.config.find("METERS.enable_training_meter", True)
        meters = meters_of(self.config)
        self.companion = VisslCompanion(self._loss, meters, meters_train=bool(enabled))
        self.last_batch = LastBatch(run, self.companion)
        # In on_end, the phase that ran last. The engine has left it, these systems have not.
        self.ended_in = ""
        self._watch: PerfWatch | None = None
        self._own_average: object = None

    @property
    def model(self) -> torch.nn.Module:
        """The model."""
        return self.run.model

    base_model = model

    @property
    def loss(self) -> torch.nn.Module:
        """The loss module; `last_batch` has the value of the loss."""
        return self._loss

    base_loss = loss

    @property
    def optimizer(self) -> OptimizerView:
        """The optimizer."""
        return OptimizerView(self.run.optimizer)

    @property
    def ema_model(self) -> object:
        """The average of the weights, with ``module``, ``update`` and ``set``; made when asked for.

        Its settings are ``HOOKS.EMA_MODEL`` of the config. A checkpoint keeps it.
        """
        if self._own_average is not None:
            return self._own_average
        decay = cast("float", self.config.find("HOOKS.EMA_MODEL.EMA_CONFIG.decay", 0.9999))
        on_cpu = self.config.find("HOOKS.EMA_MODEL.EMA_DEVICE") == "cpu"
        return self.companion.average(self.run, decay, "cpu" if on_cpu else None)

    @ema_model.setter
    def ema_model(self, value: object) -> None:
        self._own_average = value

    @property
    def meters(self) -> list[Meter] | list[ClassyMeter]:
        """The meters of the config's ``METERS``; without any, the metrics of the run.

        These are those of the last evaluation, or the means of this training phase.
        """
        if self.companion.meters:
            return self.companion.meters
        metrics = self.run.metrics.stream(self.ended_in or self.run.phase).short()
        # VISSL's meters measure quality; losses and times have attributes of their own.
        return [
            Meter(name, value)
            for name, value in metrics.items()
            if name != "loss" and not name.endswith(("_time", "_loss"))
        ]

    def _build_meters(self) -> list[ClassyMeter]:
        """Return new meters as the config describes them."""
        meters = meters_of(self.config)
        if not meters:
            raise HookError(
                f"The hook '{self.hook}' builds meters, but the config has none. Name them in "
                "Trainer(setup=Setup(config={'METERS': {'names': ['accuracy_list_meter'], "
                "'accuracy_list_meter': {...}}})), or validate averaged weights with "
                "hookloop.hooks.AverageWeights()."
            )
        return meters

    @property
    def perf_stats(self) -> PerfStats | None:
        """Where the times of the parts of an iteration are added up, if a hook has set it."""
        return self._watch.stats if self._watch is not None else None

    @perf_stats.setter
    def perf_stats(self, value: PerfStats | None) -> None:
        if self._watch is None and value is not None:
            self._watch = PerfWatch()
            self._watch.join(self.run)
        if self._watch is not None:
            self._watch.stats = value

    @property
    def perf_log(self) -> list[dict[str, object]]:
        """Samples per second of the phase that ends and of the one before."""
        return self.companion.perf_log

    @perf_log.setter
    def perf_log(self, value: list[dict[str, object]]) -> None:
        self.companion.perf_log = value

    @property
    def losses(self) -> list[float]:
        """The loss of each batch of this phase; for hooks of VISSL multiplied by its samples."""
        return self.companion.losses(self.hook)

    @losses.setter
    def losses(self, value: list[float]) -> None:
        self.companion.reset_losses(value)

    @property
    def batches(self) -> int:
        """Batches completed in this phase."""
        return len(self.losses)

    @batches.setter
    def batches(self, value: int) -> None:
        """Accept what SetDataSamplerEpochHook sets; each phase starts its own count."""

    @property
    def batch_time(self) -> list[float]:
        """Seconds of each batch so far, of all phases."""
        return self.companion.batch_time

    @property
    def checkpoint_folder(self) -> str:
        """The run's directory."""
        return str(self.run.dir)

    @property
    def device(self) -> torch.device:
        """The device of the model."""
        return self.run.device

    @property
    def use_gpu(self) -> bool:
        """Whether the model is on a CUDA device."""
        return self.run.device.type == "cuda"
