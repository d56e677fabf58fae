"""`TrainerFacade`: the run as Lightning's callbacks see it, the argument ``trainer``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, cast

from hookloop.dialects import (
    Facade,
    internals_of,
    plan_of,
)
from hookloop_callbacks.on_lightning.companion import CloseEpoch, EndBatch, LightningCompanion
from hookloop_callbacks.on_lightning.logged import Logged, Metrics
from hookloop_callbacks.on_lightning.loggers import LoggerView
from hookloop_callbacks.on_lightning.module import ModuleView
from hookloop_callbacks.on_lightning.parts import (
    Accelerator,
    FitLoop,
    LoggerConnector,
    SchedulerConfig,
    State,
    Strategy,
)

if TYPE_CHECKING:
    import torch

    from hookloop import Run


class TrainerFacade(Facade):
    """The argument ``trainer``: counters are Lightning's, requests become those of the run."""

    role = "trainer"
    hints: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "fit": "hookloop.Trainer.train, outside of callbacks",
            "validate": "run.validate() of a native hook",
            "test": "hookloop.Trainer.test, outside of callbacks",
            "predict": "hookloop.Trainer.predict, outside of callbacks",
            "profiler": "hookloop.hooks.ProfileOperators",
            "tuner": "values of your own",
        }
    )

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self.companion = LightningCompanion()
        self.logged = Logged(run)
        self._later = (EndBatch(self.companion), CloseEpoch(self.logged))
        self._logger = LoggerView(run, self.logged)
        self.lightning_module = cast("Any", ModuleView(self))
        self.state = State(run)
        self.strategy = Strategy(run)
        self.accelerator = Accelerator()
        self.fit_loop = FitLoop(self)
        self._logger_connector = LoggerConnector(self)
        self.sanity_checking = False  # Nothing is validated before training for a check alone.
        self.fast_dev_run = False
        self.datamodule = None
        self.num_sanity_val_steps = 0
        self.num_nodes = 1
        self.min_epochs = self.min_steps = None

    @classmethod
    def logger_names(cls) -> tuple[str, ...]:
        """Return the loggers of Lightning, which has another meaning for ``loggers``."""
        return ("lightning.pytorch", "pytorch_lightning")

    def join(self, run: Run) -> None:
        """Add to the run what belongs to the dialect besides its callbacks."""
        if self.companion not in run.hooks:
            self.companion.prepare(run)
            plan_of(run).add(*self._later)
            self.companion.join(run)

    # --- counters ---

    @property
    def current_epoch(self) -> int:
        """Index of the current epoch; after the last one, the number of epochs."""
        progress = self.run.progress
        # Ours counts an epoch before its validation, Lightning after its last callback.
        return progress.epoch - (progress.stage == "closing") + self.companion.epoch_offset

    @property
    def global_step(self) -> int:
        """Updates done."""
        return self.run.progress.iter

    @property
    def max_epochs(self) -> int | None:
        """Epochs to train; -1 if only the steps are limited."""
        limits = self.run.progress
        return -1 if limits.max_epochs is None and limits.max_iters else limits.max_epochs

    @property
    def max_steps(self) -> int:
        """Updates to make; -1 for no limit."""
        return self.run.progress.max_iters or -1

    @property
    def estimated_stepping_batches(self) -> float:
        """Updates of the whole training."""
        return self.run.progress.total_iters or float("inf")

    @property
    def num_training_batches(self) -> float:
        """Batches of an epoch."""
        data = self.run.train_data
        count = None if data is None else data.num_batches
        return float("inf") if count is None else count

    @property
    def num_val_batches(self) -> list[float]:
        """Batches of each validation stream."""
        return _counts(self.run.val_data)

    @property
    def num_test_batches(self) -> list[float]:
        """Batches of each test stream."""
        return _counts(internals_of(self.run).test_data)

    @property
    def num_predict_batches(self) -> list[float]:
        """Batches of each stream to predict."""
        return _counts(internals_of(self.run).predict_data)

    @property
    def is_last_batch(self) -> bool:
        """Whether the current batch is the last one of its epoch."""
        return self.companion.batch_idx(self.run) + 1 >= self.num_training_batches

    @property
    def accumulate_grad_batches(self) -> int:
        """Batches of an update."""
        return self.run.accumulate

    @property
    def check_val_every_n_epoch(self) -> int | None:
        """Every how many epochs is validated; None if it counts iterations or time."""
        every = internals_of(self.run).val_every
        if every is None:
            return 1
        return int(every.count) if every.unit == "epochs" else None

    @property
    def val_check_interval(self) -> float:
        """How much of an epoch lies between two validations, or how many batches."""
        every = internals_of(self.run).val_every
        is_by_iter = every is not None and every.unit == "iters"
        return every.count * self.run.accumulate if every is not None and is_by_iter else 1.0

    @property
    def log_every_n_steps(self) -> int:
        """Every how many steps Lightning's own callbacks log; a config may have another."""
        return int(cast("int", self.run.config.get("log_every_n_steps", 50)))

    # --- what is under way ---

    @property
    def training(self) -> bool:
        """Whether it is training."""
        return self.run.phase == "train"

    @property
    def validating(self) -> bool:
        """Whether a validation is under way."""
        return self.run.phase == "val"

    @property
    def testing(self) -> bool:
        """Whether a test is under way."""
        return self.run.phase == "test"

    @property
    def predicting(self) -> bool:
        """Whether a prediction is under way."""
        return self.run.phase == "predict"

    @property
    def should_stop(self) -> bool:
        """Whether a stop is requested; to set it is to request one."""
        return (
            internals_of(self.run).requests.stop is not None
            or internals_of(self.run).wishes.stop is not None
        )

    @should_stop.setter
    def should_stop(self, value: bool) -> None:
        if not value or self.should_stop:
            return
        self.run.stop(f"the callback '{self.hook}' set trainer.should_stop")
        # Lightning validates once more if it is stopped within an epoch.
        if self.companion.in_iteration and self.run.phase == "train" and self.run.val_data:
            self.run.validate()

    # --- metrics ---

    @property
    def callback_metrics(self) -> Metrics:
        """All metrics by name, as tensors; ``val_loss`` may be written ``val/loss``."""
        return self.logged.metrics()

    logged_metrics = progress_bar_metrics = callback_metrics

    @property
    def logger(self) -> LoggerView:
        """The logger that stands for all writers."""
        self._logger.hook = self._logger.experiment.hook = self.hook
        return self._logger

    @property
    def loggers(self) -> list[Any]:  # type: ignore[override]
        """The logger, in a list."""
        return [self.logger]

    # --- model, data, optimizers ---

    @property
    def model(self) -> Any:  # noqa: ANN401 - passes for the model
        """The model."""
        return self.lightning_module

    @property
    def optimizers(self) -> list[torch.optim.Optimizer]:
        """The optimizers."""
        return list(self.run.optimizers.values())

    @property
    def lr_scheduler_configs(self) -> list[SchedulerConfig]:
        """The schedulers, with when they step."""
        return [
            SchedulerConfig(one, reduce_on_plateau=one.metric is not None)
            for one in self.run.schedules.values()
        ]

    @property
    def train_dataloader(self) -> object:
        """The training data."""
        return None if self.run.train_data is None else self.run.train_data.data

    @property
    def val_dataloaders(self) -> object:
        """The validation data: itself if there is one stream, otherwise a list."""
        return _data(self.run.val_data)

    @property
    def test_dataloaders(self) -> object:
        """The test data: itself if there is one stream, otherwise a list."""
        return _data(internals_of(self.run).test_data)

    @property
    def predict_dataloaders(self) -> object:
        """The data to predict: itself if there is one stream, otherwise a list."""
        return _data(internals_of(self.run).predict_data)

    # --- callbacks, files, ranks ---

    @property
    def callbacks(self) -> list[object]:
        """The callbacks of the run."""
        return [adapter.foreign for adapter in self.adapters]

    @property
    def checkpoint_callbacks(self) -> list[object]:
        """None: native hooks save checkpoints."""
        return []

    @property
    def checkpoint_callback(self) -> object:
        """None: native hooks save checkpoints."""
        return None

    @property
    def early_stopping_callback(self) -> object:
        """The first callback that stops early, or None."""
        found = [one for one in self.callbacks if "EarlyStopping" in _ancestors(one)]
        return found[0] if found else None

    @property
    def default_root_dir(self) -> str:
        """The run's directory."""
        return str(self.run.dir)

    log_dir = default_root_dir

    @property
    def ckpt_path(self) -> object:
        """None: a resumed run loads its own checkpoint."""
        return None

    @property
    def is_global_zero(self) -> bool:
        """Whether this is the first rank."""
        return self.run.world.is_main

    @property
    def global_rank(self) -> int:
        """The rank of this process."""
        return self.run.world.rank

    @property
    def local_rank(self) -> int:
        """The rank of this process on its machine."""
        return self.run.world.local_rank

    @property
    def world_size(self) -> int:
        """The number of processes."""
        return self.run.world.size

    num_devices = world_size

    def save_checkpoint(
        self, filepath: str | Path, weights_only: bool | None = None, storage_options: object = None
    ) -> None:
        """Request a checkpoint after this iteration, in hookloop's own form."""
        from hookloop import Save

        path = Path(filepath)
        folder = None if path.parent == Path() else str(path.parent)
        parts = ("optimizers", "schedules") if weights_only else ()
        self.run.save(Save(path.name, location=folder, leave_out=parts))

    def print(self, *args: object, **kwargs: Any) -> None:  # noqa: ANN401 - as print takes them
        """Print on the first rank."""
        if self.is_global_zero:
            print(*args, **kwargs)  # noqa: T201 - what the callback asks for


def _counts(streams: Mapping[str, Any]) -> list[float]:
    counts = [source.num_batches for source in streams.values()]
    return [float("inf") if count is None else count for count in counts]


def _data(streams: Mapping[str, Any]) -> object:
    data = [source.data for source in streams.values()]
    return None if not data else data[0] if len(data) == 1 else data


def _ancestors(callback: object) -> list[str]:
    return [kind.__name__ for kind in type(callback).__mro__]
