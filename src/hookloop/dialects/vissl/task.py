"""`Task`: the run as hooks of ClassyVision and VISSL see it."""

from __future__ import annotations

from collections.abc import Mapping
from time import time
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, cast

from hookloop.dialects.adapter import Adapter, Facade
from hookloop.dialects.config_view import ConfigView
from hookloop.dialects.vissl.companion import VisslCompanion
from hookloop.dialects.vissl.views import LastBatch, Meter, OptimizerView

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

    from hookloop.core.run import Run


class Task(Facade):
    """The argument ``task`` of a hook.

    A phase is a pass over the training data, or an evaluation. Counters are VISSL's: ``iteration``
    counts training iterations. It starts at 0 in ``on_forward`` to ``on_update``, and at 1 in
    ``on_step``.
    """

    role = "task"
    loggers = ("vissl", "classy_vision")
    hints: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "data_iterator": "run.batch of a native hook",
            "phases": "num_train_phases, or run.progress of a native hook",
            "init_distributed_data_parallel_model": "the engine's own data parallelism",
            "set_hooks": "Trainer(hooks=[...])",
            "checkpoint_dict": "Trainer(resume=...)",
        }
    )

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self.companion = VisslCompanion()
        self.last_batch = LastBatch(run)
        self.config = ConfigView(run.config)
        self.start_time = time()
        # VISSL creates these for its hooks, which read and set them; nothing here does.
        self.additional_log_data: dict[str, object] = {}
        self.metrics: dict[str, object] = {}
        self.perf_log: list[object] = []
        self.perf_stats: object = None
        self.ema_model: object = None
        self.ema_meters: list[object] = []
        # Hooks unscale gradients if this is set. Ours reach them unscaled.
        self.amp_type: object = None
        self.amp_grad_scaler: object = None

    @property
    def train(self) -> bool:
        """Whether the current phase is a train phase."""
        return self.run.phase == "train"

    @property
    def phase_type(self) -> str:
        """``train`` or ``test``."""
        return "train" if self.train else "test"

    @property
    def test_only(self) -> bool:
        """Whether this run does not train."""
        return not self.companion.is_training

    @property
    def phase_idx(self) -> int:
        """Index of the current phase; -1 before the first."""
        return self.companion.phase_idx

    @property
    def train_phase_idx(self) -> int:
        """Index of the current or last train phase."""
        return self.companion.train_phase_idx

    @property
    def eval_phase_idx(self) -> int:
        """Index of the current or last test phase."""
        return self.phase_idx - self.train_phase_idx - 1  # All other phases are test phases.

    @property
    def iteration(self) -> int:
        """Training iterations done."""
        return self.run.progress.iter

    @property
    def local_iteration_num(self) -> int:
        """Batches of all phases, plus one for each phase but the first."""
        return self.companion.local_iteration(self.run)

    @property
    def max_iteration(self) -> int:
        """Training iterations of the whole run; -1 if unknown."""
        return self.run.progress.total_iters or -1

    @property
    def num_train_phases(self) -> int:
        """Train phases of the whole run; -1 if unknown."""
        return self.run.progress.max_epochs or -1

    @property
    def num_batches_per_phase(self) -> int:
        """Batches of the current phase; -1 if unknown."""
        if self.train:
            return self.run.progress.epoch_iters or -1
        streams = self.run.val_data if self.run.phase == "val" else self.run.test_data
        # All streams of a validation are one phase here.
        counts = [source.num_batches for source in streams.values()]
        return -1 if None in counts else sum(cast("list[int]", counts))

    @property
    def where(self) -> float:
        """The share of the training that is done, from 0 to 1."""
        total = self.run.progress.total_iters
        return self.run.progress.iter / total if total else 0.0

    @property
    def num_updates(self) -> int:
        """Samples used in all updates so far."""
        # In spite of the name, VISSL counts samples.
        return self.run.progress.iter * self.get_global_batchsize()

    @property
    def losses(self) -> list[float]:
        """The loss of each batch of this phase, multiplied by its samples."""
        return self.companion.losses

    @losses.setter
    def losses(self, value: list[float]) -> None:
        self.companion.reset_losses(value)

    @property
    def batches(self) -> int:
        """Batches completed in this phase."""
        return len(self.companion.losses)

    @batches.setter
    def batches(self, value: int) -> None:
        """Accept what SetDataSamplerEpochHook sets; each phase starts its own count."""

    @property
    def batch_time(self) -> list[float]:
        """Seconds of each training iteration of this phase."""
        return self.companion.batch_time

    @property
    def meters(self) -> list[Meter]:
        """The metrics of the last evaluation, or the means of this training phase."""
        metrics = self.run.metrics.stream(self.run.phase).short()
        # VISSL's meters measure quality; losses and times have attributes of their own.
        return [
            Meter(name, value)
            for name, value in metrics.items()
            if name != "loss" and not name.endswith(("_time", "_loss"))
        ]

    @property
    def model(self) -> torch.nn.Module:
        """The model."""
        return self.run.model

    base_model = model

    @property
    def loss(self) -> object:
        """The loss of the current batch."""
        return self.run.loss

    @property
    def optimizer(self) -> OptimizerView:
        """The optimizer."""
        return OptimizerView(self.run.optimizer)

    @property
    def dataloaders(self) -> dict[str, object]:
        """The loaders by phase: ``train`` and ``test``."""
        loaders: dict[str, object] = {}
        if self.run.train_data is not None:
            loaders["train"] = self.run.train_data.data
        # VISSL has one kind of evaluation. Validation data, which a training uses, comes last and
        # wins.
        for streams in (self.run.test_data, self.run.val_data):
            if streams:
                loaders["test"] = next(iter(streams.values())).data
        return loaders

    @property
    def datasets(self) -> dict[str, object]:
        """The data sets by phase; a loader without one is returned itself."""
        loaders = self.dataloaders
        return {phase: getattr(loader, "dataset", loader) for phase, loader in loaders.items()}

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

    @property
    def hooks(self) -> list[object]:
        """The hooks of ClassyVision and VISSL in the run."""
        return [adapter.foreign for adapter in self._adapters()]

    def get_batchsize_per_replica(self) -> int:
        """Return the samples per batch of one process; of several, the most that one has."""
        # From the loader, because the last batch of an epoch may be smaller.
        size = getattr(self.dataloaders.get("train"), "batch_size", None)
        return -(-size // self.run.world.size) if isinstance(size, int) else self.run.batch_size

    def get_global_batchsize(self) -> int:
        """Return the samples per batch of all processes."""
        # The loader has the batches of all processes, of which each takes its part.
        size = getattr(self.dataloaders.get("train"), "batch_size", None)
        return size if isinstance(size, int) else self.run.batch_size * self.run.world.size

    def get_classy_state(self) -> dict[str, object]:
        """Return the state of the phases and hooks, as in a checkpoint."""
        return {
            **self.companion.state_dict(),
            "hooks": {adapter.name: adapter.state_dict() for adapter in self._adapters()},
        }

    def run_hooks(self, name: str) -> None:
        """Call a method of every hook that has it."""
        for hook in self.hooks:
            method = cast("Callable[[Task], None] | None", getattr(hook, name, None))
            if method is not None:
                method(self)

    def _adapters(self) -> list[Adapter]:
        return [
            hook for hook in self.run.hooks if isinstance(hook, Adapter) and hook.facade is self
        ]
