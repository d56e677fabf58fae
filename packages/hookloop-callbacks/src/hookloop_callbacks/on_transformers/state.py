"""`StateView`: the run as ``TrainerState``, the argument ``state``."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hookloop.dialects import Facade

if TYPE_CHECKING:
    from hookloop import Run
    from hookloop_callbacks.on_transformers.facade import TransformersFacade

KEPT = ("log_history", "best_metric", "best_global_step", "best_model_checkpoint", "total_flos")


class StateView(Facade):
    """The argument ``state``.

    Args:
        run: The run.
        owner: Knows which callback is called, and the arguments.
    """

    role = "state"

    def __init__(self, run: Run, owner: TransformersFacade) -> None:
        super().__init__(run)
        self._owner = owner
        self._args = owner.args
        self.log_history: list[dict[str, float]] = []
        self.best_metric: float | None = None
        self.best_global_step: int | None = None
        self.best_model_checkpoint: str | None = None
        self.total_flos = 0.0
        self.num_input_tokens_seen = 0
        self.is_hyper_param_search = False
        self.trial_name: str | None = None
        self.trial_params: dict[str, Any] | None = None

    def __getattr__(self, name: str) -> object:
        if "_owner" in self.__dict__:
            self.hook = self._owner.hook  # For the message.
        return super().__getattr__(name)

    @property
    def global_step(self) -> int:
        """Updates done."""
        return self.run.progress.iter

    @property
    def epoch(self) -> float:
        """Epochs done, with the share of the current one."""
        progress = self.run.progress
        if progress.stage != "inside" or not progress.iter_in_epoch:
            return float(progress.epoch)
        data = self.run.train_data
        batches = None if data is None else data.num_batches
        if batches:  # Transformers counts batches, of which the last update may have fewer.
            done = min(progress.iter_in_epoch * self.run.accumulate, batches)
            return progress.epoch + done / batches
        total = progress.epoch_iters or progress.total_iters
        return progress.epoch + (progress.iter_in_epoch / total if total else 0.0)

    @property
    def max_steps(self) -> int:
        """Updates of the whole training."""
        return self.run.progress.total_iters or 0

    @property
    def num_train_epochs(self) -> int:
        """Epochs of the whole training."""
        progress = self.run.progress
        if progress.max_epochs is not None:
            return progress.max_epochs
        if progress.epoch_iters and progress.max_iters:
            return math.ceil(progress.max_iters / progress.epoch_iters)
        return 1

    @property
    def train_batch_size(self) -> int:
        """Samples of a batch."""
        return self._args.train_batch_size

    @property
    def logging_steps(self) -> int:
        """Every how many updates is logged."""
        return self._steps("logging_steps")

    @property
    def save_steps(self) -> int:
        """Every how many updates is saved."""
        return self._steps("save_steps")

    @property
    def eval_steps(self) -> int:
        """Every how many updates is validated."""
        return self._steps("eval_steps") or 500

    def _steps(self, name: str) -> int:
        value: Any = getattr(self._args, name)
        # Less than 1 means a share of the training.
        return math.ceil(self.max_steps * value) if value and value < 1 else int(value or 0)

    @property
    def is_local_process_zero(self) -> bool:
        """Whether this is the first rank of its machine."""
        return self.run.world.local_rank == 0

    @property
    def is_world_process_zero(self) -> bool:
        """Whether this is the first rank."""
        return self.run.world.is_main

    @property
    def stateful_callbacks(self) -> dict[str, Any]:
        """The callbacks whose state is kept; checkpoints have it under the callbacks' names."""
        return {}

    def to_dict(self) -> dict[str, Any]:
        """Return all values by name."""
        names = (
            "epoch", "global_step", "max_steps", "logging_steps", "eval_steps", "save_steps",
            "train_batch_size", "num_train_epochs", "num_input_tokens_seen", *KEPT,
            "is_local_process_zero", "is_world_process_zero", "is_hyper_param_search",
            "trial_name", "trial_params",
        )  # fmt: skip
        return {name: getattr(self, name) for name in names}

    def save_to_json(self, json_path: str) -> None:
        """Write all values to a file."""
        text = json.dumps(self.to_dict(), indent=2, sort_keys=True)
        Path(json_path).write_text(f"{text}\n", encoding="utf-8")
