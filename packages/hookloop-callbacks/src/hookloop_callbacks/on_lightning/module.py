"""`ModuleView`: the model as callbacks see it, the argument ``pl_module``.

It passes for the model: what is read, called, set or deleted is the model's. It adds what a
LightningModule has and a plain module does not: logging, counters, the trainer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import torch

from hookloop.dialects import ConfigView
from hookloop.errors import HookError

if TYPE_CHECKING:
    from hookloop_callbacks.on_lightning.trainer import TrainerFacade


class ModuleView:
    """The argument ``pl_module`` of a callback.

    Args:
        trainer: The facade of the run.
    """

    # Attributes of the view itself; all others are the model's.
    __slots__ = ("__weakref__", "_view_trainer")
    _view_trainer: TrainerFacade

    def __init__(self, trainer: TrainerFacade) -> None:
        object.__setattr__(self, "_view_trainer", trainer)

    # isinstance looks at this: the view is an nn.Module, and of the model's own class.
    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self._view_trainer.run.model)

    # --- the model ---

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the model has
        if name in _DEFAULTS and not hasattr(self._view_trainer.run.model, name):
            return _DEFAULTS[name](self._view_trainer)
        return getattr(self._view_trainer.run.model, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._view_trainer.run.model, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._view_trainer.run.model, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - the model's own
        return self._view_trainer.run.model(*args, **kwargs)

    def __getitem__(self, index: Any) -> Any:  # noqa: ANN401 - of a Sequential, say
        return self._view_trainer.run.model[index]  # type: ignore[index]

    def __iter__(self) -> Any:  # noqa: ANN401
        return iter(self._view_trainer.run.model)  # type: ignore[call-overload]

    def __len__(self) -> int:
        return len(self._view_trainer.run.model)  # type: ignore[arg-type]

    def __bool__(self) -> bool:
        return True  # As a module without a length is.

    def __repr__(self) -> str:
        return repr(self._view_trainer.run.model)

    def __dir__(self) -> list[str]:
        return sorted({*dir(self._view_trainer.run.model), *vars(ModuleView), *_DEFAULTS})

    def __deepcopy__(self, memo: dict[int, Any]) -> torch.nn.Module:
        return deepcopy(self._view_trainer.run.model, memo)

    # --- what a LightningModule has besides ---

    @property
    def trainer(self) -> TrainerFacade:
        """The trainer."""
        return self._view_trainer

    @property
    def current_epoch(self) -> int:
        """Index of the current epoch."""
        return self._view_trainer.current_epoch

    @property
    def global_step(self) -> int:
        """Updates done."""
        return self._view_trainer.global_step

    @property
    def global_rank(self) -> int:
        """The rank of this process."""
        return self._view_trainer.global_rank

    @property
    def local_rank(self) -> int:
        """The rank of this process on its machine."""
        return self._view_trainer.local_rank

    @property
    def logger(self) -> object:
        """The logger."""
        return self._view_trainer.logger

    @property
    def loggers(self) -> list[Any]:
        """The loggers."""
        return self._view_trainer.loggers

    def optimizers(self, use_pl_optimizer: bool = True) -> object:
        """Return the optimizer, or a list if there are several."""
        found = self._view_trainer.optimizers
        return found[0] if len(found) == 1 else found

    def lr_schedulers(self) -> object:
        """Return the scheduler, a list of several, or None."""
        found = [config.scheduler for config in self._view_trainer.lr_scheduler_configs]
        return (found[0] if len(found) == 1 else found) if found else None

    def log(  # noqa: PLR0913, PLR0917 - the signature is Lightning's
        self,
        name: str,
        value: object,
        prog_bar: bool = False,
        logger: bool | None = None,
        on_step: bool | None = None,
        on_epoch: bool | None = None,
        reduce_fx: str | Callable[..., Any] = "mean",
        enable_graph: bool = False,
        sync_dist: bool = False,
        sync_dist_group: object = None,
        add_dataloader_idx: bool = True,
        batch_size: int | None = None,
        metric_attribute: str | None = None,
        rank_zero_only: bool = False,
    ) -> None:
        """Log a number: of this step in a training iteration, of the epoch elsewhere."""
        trainer = self._view_trainer
        if trainer.predicting:
            raise HookError(
                f"The callback '{trainer.hook}' logs '{name}' in a prediction, which Lightning "
                "rejects, too: a prediction has no metrics. Write it to a file of your own."
            )
        in_step = trainer.run.phase == "train" and trainer.companion.in_iteration
        step = in_step if on_step is None else on_step
        epoch = not in_step if on_epoch is None else on_epoch
        if sync_dist and trainer.world_size > 1:
            # A collective call: in Lightning, too, all ranks have to log.
            value = trainer.run.reduce(float(value))  # type: ignore[arg-type]
        place = trainer.companion.place
        if add_dataloader_idx and place.has_several and trainer.run.phase != "train":
            name = f"{name}/dataloader_idx_{place.dataloader_idx}"
        trainer.logged.log(
            name, value, on_step=step, on_epoch=epoch, reduce_fx=reduce_fx, batch_size=batch_size
        )

    def log_dict(self, dictionary: Mapping[str, object], *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        """Log several numbers; the other arguments are those of `log`."""
        for name, value in dictionary.items():
            self.log(name, value, *args, **kwargs)

    def print(self, *args: object, **kwargs: Any) -> None:  # noqa: ANN401 - as print takes them
        """Print on the first rank."""
        self._view_trainer.print(*args, **kwargs)


def _hparams(trainer: TrainerFacade) -> ConfigView:
    return ConfigView(trainer.run.config)


# What a LightningModule has unless its author says otherwise; the model's own comes first.
_DEFAULTS: dict[str, Callable[[TrainerFacade], Any]] = {
    "device": lambda trainer: trainer.run.device,
    "dtype": lambda trainer: next(iter(trainer.run.model.parameters())).dtype,
    "hparams": _hparams,
    "hparams_initial": _hparams,
    "automatic_optimization": lambda trainer: True,
    "example_input_array": lambda trainer: None,
    "on_gpu": lambda trainer: trainer.run.device.type == "cuda",
}
