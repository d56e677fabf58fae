"""`EngineFacade`: the run as iMIX's hooks see it in ``self.trainer``."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, cast

from hookloop.dialects.adapter import Adapter, Facade
from hookloop.dialects.config_view import ConfigView
from hookloop.dialects.imix.companion import ImixCompanion
from hookloop.dialects.imix.log_buffer import LogBufferStorage
from hookloop.errors import HookError

if TYPE_CHECKING:
    import torch

    from hookloop.core.run import Run


class Output(dict[str, object]):
    """What the model returned, with the loss; a loss that a hook sets takes effect."""

    def __init__(self, run: Run) -> None:
        whole = run.output
        super().__init__(whole if isinstance(whole, Mapping) else {})
        if run.loss is not None:
            super().__setitem__("loss", run.loss)
        self._run = run

    def __setitem__(self, name: str, value: object) -> None:
        super().__setitem__(name, value)
        if name == "loss":
            self._run.loss = cast("torch.Tensor", value)
        elif isinstance(self._run.output, MutableMapping):
            self._run.output[name] = value


class OptimizerView:
    """The optimizer to look at; the update is the loop's."""

    def __init__(self, optimizer: torch.optim.Optimizer, hook: str) -> None:
        self.__dict__["_optimizer"] = optimizer
        self.__dict__["_hook"] = hook

    def zero_grad(self, *args: object, **kwargs: object) -> None:
        """Refuse."""
        raise self._refusal("zero_grad")

    def step(self, *args: object, **kwargs: object) -> None:
        """Refuse."""
        raise self._refusal("step")

    def _refusal(self, verb: str) -> HookError:
        return HookError(
            f"The hook '{self._hook}' calls trainer.optimizer.{verb}: iMIX's optimizer hooks make "
            "backward and update themselves, here the loop makes them. Leave the hook out: "
            "accumulation, clipping and half precision are Trainer(accumulate=, clip_norm=, "
            "precision=)."
        )

    def __getattr__(self, name: str) -> object:
        return getattr(self.__dict__["_optimizer"], name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self.__dict__["_optimizer"], name, value)


class EngineFacade(Facade):
    """What a hook finds in ``self.trainer``; counters are iMIX's, from 0."""

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

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self.log_buffer = LogBufferStorage(run)
        self.companion = ImixCompanion(self.log_buffer)
        self.cfg = ConfigView(run.config)
        self.gradient_accumulation_steps = 1  # An iteration is an update, with all its batches.
        self.is_lr_accumulation = True
        self.imixed_precision = False

    @property
    def iter(self) -> int:
        """Which iteration this is."""
        return self.run.progress.iter - self.companion.behind_iter

    @property
    def inner_iter(self) -> int:
        """Which iteration of the epoch this is."""
        return self.run.progress.iter_in_epoch - self.companion.behind_iter

    @property
    def epoch(self) -> int:
        """Which epoch this is."""
        return self.run.progress.epoch - self.companion.behind_epoch

    @property
    def start_iter(self) -> int:
        """With which iteration the training began."""
        return self.companion.start_iter

    @property
    def start_epoch(self) -> int:
        """With which epoch the training began."""
        return self.companion.start_epoch

    @property
    def max_iter(self) -> int | None:
        """Iterations of the whole run, if that can be told."""
        return self.run.progress.total_iters

    @property
    def max_epoch(self) -> int | None:
        """Epochs of the whole run, if there is a limit."""
        return self.run.progress.max_epochs

    @property
    def by_epoch(self) -> bool:
        """Whether the training is counted in epochs; otherwise no epoch's stages are called."""
        return self.run.progress.max_epochs is not None or self.run.progress.max_iters is None

    @property
    def model(self) -> torch.nn.Module:
        """The model."""
        return self.run.model

    @property
    def optimizer(self) -> OptimizerView:
        """The optimizer, to look at."""
        return OptimizerView(self.run.optimizer, self.hook)

    @property
    def data_loader(self) -> object:
        """The training data."""
        return None if self.run.train_data is None else self.run.train_data.data

    @property
    def output(self) -> Output:
        """What the model returned, with ``loss``."""
        return Output(self.run)

    @property
    def model_output(self) -> object:
        """What the model returned."""
        return self.run.output

    @property
    def work_dir(self) -> str:
        """The run's directory."""
        return str(self.run.dir)

    @property
    def _hooks(self) -> list[object]:
        return [
            hook.foreign
            for hook in self.run.hooks
            if isinstance(hook, Adapter) and hook.facade is self
        ]
