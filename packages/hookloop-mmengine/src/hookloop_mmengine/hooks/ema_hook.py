"""``mmengine.hooks.EMAHook``: averaged weights for validation and test."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from hookloop import hooks as native
from hookloop.errors import HookError, nearest
from hookloop_mmengine.hooks.hook import DATA_BATCH, Hook
from hookloop_mmengine.hooks.replaceable import Replaceable
from hookloop_mmengine.model.averaged_model import BaseAveragedModel
from hookloop_mmengine.model.wrappers import is_model_wrapper
from hookloop_mmengine.registry import MODELS

if TYPE_CHECKING:
    from hookloop import Hook as NativeHook
    from hookloop_mmengine.facade import RunnerFacade

KINDS = {
    "ExponentialMovingAverage": "exponential",
    "StochasticWeightAverage": "stochastic",
    "MomentumAnnealingEMA": "annealing",
}
_PARAMETERS = {"momentum", "interval", "device", "update_buffers", "gamma"}


class EMAHook(Hook, Replaceable):
    """Average the weights during the training; validation and test use the average.

    Args:
        ema_type: ``ExponentialMovingAverage``, ``StochasticWeightAverage``,
            ``MomentumAnnealingEMA``, or an averaged model that is registered in ``MODELS``.
        strict_load: Whether the average must have all weights of a file, for averages that are
            registered; the native average always requires them.
        begin_iter: The first iteration that is averaged.
        begin_epoch: The first epoch that is averaged; not together with ``begin_iter``.
        kwargs: ``momentum`` (0.0002, the share of the new weights), ``interval`` (1), ``device``,
            ``update_buffers`` (False), ``gamma`` (100).
    """

    priority = "NORMAL"
    own = (
        "before_run", "after_train_iter", "before_val_epoch", "after_val_epoch",
        "before_test_epoch", "after_test_epoch", "before_save_checkpoint", "after_load_checkpoint",
        "_ema_started", "_swap_ema_parameters", "_swap_ema_state_dict",
    )  # fmt: skip
    takes_part_in_training = True

    def __init__(
        self,
        ema_type: str | type = "ExponentialMovingAverage",
        strict_load: bool = False,
        begin_iter: int = 0,
        begin_epoch: int = 0,
        **kwargs: object,
    ) -> None:
        if begin_iter and begin_epoch:
            raise AssertionError("`begin_iter` and `begin_epoch` should not be both set.")
        if begin_iter < 0 or begin_epoch < 0:
            raise AssertionError("`begin_iter` and `begin_epoch` must not be negative.")
        # A class may be given instead of a name, as in newer configs.
        kind = ema_type if isinstance(ema_type, str) else ema_type.__name__
        if kind not in KINDS and isinstance(ema_type, str) and MODELS.find(kind) is None:
            raise HookError(
                f"EMAHook: there is no ema_type '{kind}'.{nearest(kind, KINDS)} Use one of "
                f"{', '.join(KINDS)}, or a name that is registered in MODELS."
            )
        # Registered averages have parameters of their own, which only they can check.
        for name in kwargs:
            if kind in KINDS and name not in _PARAMETERS:
                raise TypeError(f"EMAHook has no argument '{name}'.{nearest(name, _PARAMETERS)}")
        self.strict_load = strict_load
        self.begin_iter = begin_iter
        self.begin_epoch = begin_epoch
        self.enabled_by_epoch = begin_epoch > 0
        self.ema_cfg: dict[str, object] = {"type": ema_type, **kwargs}
        self._kind = KINDS.get(kind)
        self._options = kwargs

    @property
    def acts_itself(self) -> bool:
        """Whether the methods are called; always for an average that no native hook computes."""
        return self._kind is None or super().acts_itself

    def native_hooks(self) -> list[NativeHook]:
        options: dict[str, Any] = dict(self._options)
        # Our hook has another name for it.
        if "update_buffers" in options:
            options["buffers"] = options.pop("update_buffers")
        # MMEngine names the first averaged epoch, our hook the last one that is not averaged.
        begin = f"{self.begin_epoch - 1} epochs" if self.begin_epoch > 1 else self.begin_iter
        return [
            # MMEngine has no warm-up of the momentum, which our hook has by default.
            native.AverageWeights(cast("Any", self._kind), begin=begin, warmup=False, **options)
        ]

    def before_train(self, runner: RunnerFacade) -> None:
        # The limits are known only now.
        if self.begin_iter > runner.max_iters or self.begin_epoch > runner.max_epochs:
            raise AssertionError(
                f"EMAHook begins after the end of the training: begin_iter={self.begin_iter} of "
                f"{runner.max_iters}, begin_epoch={self.begin_epoch} of {runner.max_epochs}."
            )

    # --- the same work in methods, for registered averages and for subclasses that override one

    def before_run(self, runner: RunnerFacade) -> None:
        model = runner.model
        self.src_model: nn.Module = model.module if is_model_wrapper(model) else model  # type: ignore[assignment]
        built = MODELS.build(dict(self.ema_cfg), default_args={"model": self.src_model})
        self.ema_model = cast("BaseAveragedModel", built)

    def after_train_iter(
        self,
        runner: RunnerFacade,
        batch_idx: int,
        data_batch: DATA_BATCH = None,
        outputs: dict[str, object] | None = None,
    ) -> None:
        if self._ema_started(runner):
            self.ema_model.update_parameters(self.src_model)
        else:
            # Before the begin, the average follows the model exactly.
            self.ema_model.module.load_state_dict(self.src_model.state_dict())

    def before_val_epoch(self, runner: RunnerFacade) -> None:
        self._swap_ema_parameters()

    def after_val_epoch(
        self, runner: RunnerFacade, metrics: dict[str, float] | None = None
    ) -> None:
        self._swap_ema_parameters()

    def before_test_epoch(self, runner: RunnerFacade) -> None:
        self._swap_ema_parameters()

    def after_test_epoch(
        self, runner: RunnerFacade, metrics: dict[str, float] | None = None
    ) -> None:
        self._swap_ema_parameters()

    def before_save_checkpoint(self, runner: RunnerFacade, checkpoint: dict[str, object]) -> None:
        checkpoint["ema_state_dict"] = self.ema_model.state_dict()
        self._swap_ema_state_dict(checkpoint)

    def after_load_checkpoint(self, runner: RunnerFacade, checkpoint: dict[str, object]) -> None:
        # Files hold the average as `state_dict`, so a resume has to exchange both again.
        if "ema_state_dict" in checkpoint and runner._resume:
            self._swap_ema_state_dict(checkpoint)
            saved = cast("dict[str, Tensor]", checkpoint["ema_state_dict"])
            self.ema_model.load_state_dict(saved, strict=self.strict_load)
        else:
            weights = cast("dict[str, Tensor]", checkpoint["state_dict"])
            self.ema_model.module.load_state_dict(weights, strict=self.strict_load)

    def _ema_started(self, runner: RunnerFacade) -> bool:
        """Return whether this iteration is averaged."""
        if self.enabled_by_epoch:
            return runner.epoch + 1 >= self.begin_epoch
        return runner.iter + 1 >= self.begin_iter

    @torch.no_grad()
    def _swap_ema_parameters(self) -> None:
        """Exchange the weights of the model with the average."""
        buffers = self.ema_model.update_buffers
        pairs = zip(
            _tensors(self.ema_model.module, buffers=buffers),
            _tensors(self.src_model, buffers=buffers),
            strict=True,
        )
        for average, weight in pairs:
            # Copied in place: optimizers and hooks hold references to these tensors.
            averaged = average.detach().clone()
            average.copy_(weight)
            weight.copy_(averaged)

    def _swap_ema_state_dict(self, checkpoint: dict[str, object]) -> None:
        """Exchange the weights and the average in a checkpoint."""
        weights = dict(cast("dict[str, Tensor]", checkpoint["state_dict"]))
        averages = dict(cast("dict[str, Tensor]", checkpoint["ema_state_dict"]))
        for key, value in checkpoint["ema_state_dict"].items():  # type: ignore[attr-defined]
            name = key.removeprefix("module.")
            if name != key:
                averages[key], weights[name] = weights[name], value
        checkpoint["state_dict"], checkpoint["ema_state_dict"] = weights, averages


def _tensors(model: nn.Module, *, buffers: bool) -> Iterator[Tensor]:
    return chain(model.parameters(), model.buffers()) if buffers else model.parameters()
