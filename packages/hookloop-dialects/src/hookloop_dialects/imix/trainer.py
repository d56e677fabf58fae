"""`EngineFacade`: the run as iMIX's hooks see it in ``self.trainer``."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, cast

from hookloop.dialects import Adapter, ConfigView, Facade, LeftToLoop, with_own_values
from hookloop.errors import HookError
from hookloop_dialects.imix.companion import ImixCompanion
from hookloop_dialects.imix.log_buffer import LogBufferStorage

if TYPE_CHECKING:
    import torch

    from hookloop import Run


class Output(dict[str, Any]):
    """The model's output with the loss; a loss that a hook sets takes effect."""

    def __init__(self, run: Run) -> None:
        output = run.output
        super().__init__(output if isinstance(output, Mapping) else {})
        # Through super: this loss is the run's own and need not be set there again.
        if run.loss is not None:
            super().__setitem__("loss", run.loss)
        self._run = run

    def __setitem__(self, name: str, value: Any) -> None:  # noqa: ANN401 - an output
        super().__setitem__(name, value)
        if name == "loss":
            self._run.loss = cast("torch.Tensor", value)
        # Other hooks read the run's output, not this copy.
        elif isinstance(self._run.output, MutableMapping):
            self._run.output[name] = value


class OptimizerView:
    """The optimizer, for reading and setting its values, for hooks that do not make the update."""

    def __init__(self, optimizer: torch.optim.Optimizer, hook: str) -> None:
        # Through __dict__, because __setattr__ below sets attributes of the optimizer.
        self.__dict__["_optimizer"] = optimizer
        self.__dict__["_hook"] = hook

    def zero_grad(self, *args: object, **kwargs: object) -> None:
        """Reject the call."""
        raise self._error("zero_grad")

    def step(self, *args: object, **kwargs: object) -> None:
        """Reject the call."""
        raise self._error("step")

    def _error(self, method: str) -> HookError:
        return HookError(
            f"The hook '{self._hook}' calls trainer.optimizer.{method}, and is not known to make "
            "the update: if it does, write makes_update = True in its class. Otherwise remove the "
            "call: the loop, or another hook, makes the update."
        )

    def __getattr__(self, name: str) -> object:
        return getattr(self.__dict__["_optimizer"], name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self.__dict__["_optimizer"], name, value)


class EngineFacade(Facade):
    """The object in a hook's ``self.trainer``; its counters are iMIX's and start at 0."""

    role = "trainer"
    loggers = ("imix",)
    hints: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "loss_fn": "trainer.output['loss'], or the Trainer's loss=",
            "run_train_iter": "Trainer(step=...)",
            "register_hooks": "Trainer(hooks=[...])",
            "checkpointer": "run.save() of a native hook",
        }
    )

    loss_fn = LeftToLoop()
    run_train_iter = LeftToLoop()

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self.log_buffer = LogBufferStorage(run=run)
        self.companion = ImixCompanion(self.log_buffer)
        self.cfg = ConfigView(with_own_values(run.config))
        # One of our iterations is a whole update, unless a hook makes the updates.
        self.gradient_accumulation_steps = 1
        self.is_lr_accumulation = bool(self.cfg.find("is_lr_accumulation", True))
        self.imixed_precision = False
        self._update_hook = ""

    def leave_update_to(self, hook: str) -> None:
        """Let a hook use the optimizer, and group iterations as its config says."""
        self._update_hook = hook
        steps = self.cfg.find("gradient_accumulation_steps", 1)
        self.gradient_accumulation_steps = steps if isinstance(steps, int) else 1

    @property
    def iter(self) -> int:
        """Index of the current iteration."""
        return self.run.progress.iter - self.companion.behind_iter

    @property
    def inner_iter(self) -> int:
        """Index within its epoch of the iteration that began last."""
        return self.companion.inner_iter

    @property
    def epoch(self) -> int:
        """Index of the current epoch."""
        return self.run.progress.epoch - self.companion.behind_epoch

    @property
    def start_iter(self) -> int:
        """The first iteration of this training."""
        return self.companion.start_iter

    @property
    def start_epoch(self) -> int:
        """The first epoch of this training."""
        return self.companion.start_epoch

    @property
    def max_iter(self) -> int | None:
        """Iterations of the whole run, if known."""
        return self.run.progress.total_iters

    @property
    def max_epoch(self) -> int | None:
        """Epochs of the whole run, if there is a limit."""
        return self.run.progress.max_epochs

    @property
    def by_epoch(self) -> bool:
        """Whether the training is counted in epochs; otherwise stages of epochs are not called."""
        return self.run.progress.max_epochs is not None or self.run.progress.max_iters is None

    @property
    def model(self) -> torch.nn.Module:
        """The model."""
        return self.run.model

    @property
    def optimizer(self) -> torch.optim.Optimizer | OptimizerView:
        """The optimizer."""
        # A scheduler made before the training accepts nothing but a real optimizer, and a scaler
        # recognizes its optimizer by identity.
        if self.hook == self._update_hook or self.companion.is_starting:
            return self.run.optimizer
        # A new view for each access, so that an error names the hook that is being called.
        return OptimizerView(self.run.optimizer, self.hook)

    @property
    def data_loader(self) -> object:
        """The training data."""
        return None if self.run.train_data is None else self.run.train_data.data

    @property
    def output(self) -> Output:
        """The model's output with ``loss``."""
        return Output(self.run)

    @property
    def model_output(self) -> object:
        """The model's output."""
        return self.run.output

    @property
    def work_dir(self) -> str:
        """The run's directory."""
        return str(self.run.dir)

    # Private in iMIX too, but its hooks use it to find each other.
    @property
    def _hooks(self) -> list[object]:
        return [
            hook.foreign
            for hook in self.run.hooks
            if isinstance(hook, Adapter) and hook.facade is self
        ]
