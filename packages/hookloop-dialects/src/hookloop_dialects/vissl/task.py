"""`Task`: the run as hooks of ClassyVision and VISSL see it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from time import time
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, cast

from torch import nn

from hookloop.dialects import Adapter, LeftToLoop
from hookloop.errors import HookError
from hookloop_dialects.vissl.task_data import TaskData

if TYPE_CHECKING:
    from collections.abc import Callable

    from hookloop import Run


class Task(TaskData):
    """The argument ``task`` of a hook.

    A phase is a pass over the training data, or an evaluation. Counters are VISSL's: ``iteration``
    counts training iterations. It starts at 0 in ``on_forward`` to ``on_update``, and at 1 in
    ``on_step``.
    """

    loggers = ("vissl", "classy_vision", "root")  # Hook files call logging.info.
    hints: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "data_iterator": "task.create_data_iterators(), which begins a pass of the hook's own,",
            "phases": "num_train_phases, or run.progress of a native hook",
            "advance_phase": "the loop, which begins the phases,",
            "train_step": "Trainer(step=...)",
            "eval_step": "run.validate() of a native hook",
            "mixup_transform": "a native hook that replaces run.batch in before_forward",
            "clip_grad_norm": "Trainer(clip_norm=...)",
            "optimizer_period": "Trainer(accumulate=...)",
            "test_phase_period": "Trainer(val_every=...)",
            "set_classy_state": "Trainer(resume=...)",
            "get_total_test_phases": "num_train_phases",
            "init_distributed_data_parallel_model": "the engine's own data parallelism",
            "set_hooks": "Trainer(hooks=[...])",
            "checkpoint_dict": "Trainer(resume=...)",
        }
    )

    phases = LeftToLoop()
    advance_phase = LeftToLoop()
    train_step = LeftToLoop()
    eval_step = LeftToLoop()
    mixup_transform = LeftToLoop()
    clip_grad_norm = LeftToLoop()
    optimizer_period = LeftToLoop()
    test_phase_period = LeftToLoop()

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self.start_time = time()
        # VISSL creates these for its hooks, which read and set them; nothing here does.
        self.additional_log_data: dict[str, object] = {}
        self.metrics: dict[str, object] = {}
        self.ema_meters: list[object] = []
        # Hooks unscale gradients if this is set. Ours reach them unscaled.
        self.amp_args: object = None
        self.amp_type: object = None
        self.amp_grad_scaler: object = None
        # The engine replicates the model itself.
        self.distributed_model: object = None
        self.enable_manual_gradient_reduction = False

    @property
    def train(self) -> bool:
        """Whether the current phase is a train phase."""
        return (self.ended_in or self.run.phase) == "train"

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

    @iteration.setter
    def iteration(self, value: int) -> None:
        # Hooks of the first versions of VISSL counted. Here the loop does.
        if value != self.iteration + 1:
            raise HookError(
                f"The hook '{self.hook}' sets task.iteration to {value}, but the loop counts the "
                "iterations. Remove the line, or stop the run with run.stop() of a native hook."
            )

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
    def num_epochs(self) -> int:
        """Epochs of the whole run; -1 if unknown."""
        return self.num_train_phases

    def get_total_training_phases(self) -> int:
        """Return the train phases of the whole run; -1 if unknown."""
        return self.num_train_phases

    @property
    def done_training(self) -> Callable[[], bool]:
        """Tells whether the training is complete; if a hook sets it, it is asked after epochs."""
        return self.companion.done_training or self._is_complete

    @done_training.setter
    def done_training(self, value: Callable[[], bool]) -> None:
        self.companion.done_training = value

    def _is_complete(self) -> bool:
        return 0 <= self.num_train_phases <= self.run.progress.epoch

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
    def hooks(self) -> list[object]:
        """The hooks of ClassyVision and VISSL in the run."""
        return [adapter.foreign for adapter in self._adapters()]

    def get_classy_state(self, deep_copy: bool = False) -> dict[str, object]:
        """Return the state of the task in the form of a checkpoint of ClassyVision.

        Args:
            deep_copy: Whether to copy the tensors, which the training changes.
        """
        hooks = {_name_of(hook): _state_of(hook) for hook in self.hooks}
        state: dict[str, object] = {
            "train": self.train,
            "base_model": _state_of(self.base_model),
            "meters": [meter.get_classy_state() for meter in self.meters],
            "optimizer": self.optimizer.get_classy_state(),
            "phase_idx": self.phase_idx,
            "train_phase_idx": self.train_phase_idx,
            "num_updates": self.num_updates,
            "losses": self.losses,
            "hooks": hooks,
            "loss": self.loss.state_dict(),
        }
        if self.companion.ema_model is not None:
            state["ema_model"] = self.companion.ema_model.module.state_dict()
        return copy.deepcopy(state) if deep_copy else state

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


def _name_of(hook: object) -> str:
    return type(hook).__name__


def _state_of(holder: object) -> object:
    """Return the state of a hook or a model; of an ordinary model in ClassyVision's form."""
    get = getattr(holder, "get_classy_state", None)
    if callable(get):
        return get()
    return (
        {"model": {"trunk": holder.state_dict(), "heads": {}}}
        if isinstance(holder, nn.Module)
        else {}
    )
