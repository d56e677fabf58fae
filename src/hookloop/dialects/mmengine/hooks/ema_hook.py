"""``mmengine.hooks.EMAHook``: averaged weights for validation and test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookloop.dialects.adapter import Catalogued, native
from hookloop.dialects.mmengine.hooks.hook import Hook
from hookloop.errors import HookError, nearest

if TYPE_CHECKING:
    from hookloop.core.hook import Hook as NativeHook
    from hookloop.dialects.mmengine.facade import RunnerFacade

KINDS = {
    "ExponentialMovingAverage": "exponential",
    "StochasticWeightAverage": "stochastic",
    "MomentumAnnealingEMA": "annealing",
}
_PARAMETERS = {"momentum", "interval", "device", "update_buffers", "gamma"}


class EMAHook(Hook, Catalogued):
    """Average the weights along the training; validation and test use the average.

    Args:
        ema_type: ``ExponentialMovingAverage``, ``StochasticWeightAverage`` or
            ``MomentumAnnealingEMA``.
        strict_load: Kept for its name; our checkpoints have all weights or are refused.
        begin_iter: The first iteration that is averaged.
        begin_epoch: The first epoch that is averaged, instead.
        kwargs: ``momentum`` (0.0002, the share of the new weights), ``interval`` (1), ``device``,
            ``update_buffers`` (False), ``gamma`` (100).
    """

    priority = "NORMAL"

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
        kind = ema_type if isinstance(ema_type, str) else ema_type.__name__
        if kind not in KINDS:
            raise HookError(
                f"EMAHook: ema_type '{kind}' is not offered.{nearest(kind, KINDS)} There are: "
                f"{', '.join(KINDS)}."
            )
        for name in kwargs:
            if name not in _PARAMETERS:
                raise TypeError(f"EMAHook takes no '{name}'.{nearest(name, _PARAMETERS)}")
        self.begin_iter = begin_iter
        self.begin_epoch = begin_epoch
        self._kind = KINDS[kind]
        self._options = kwargs

    def native_hooks(self) -> list[NativeHook]:
        options = dict(self._options)
        if "update_buffers" in options:
            options["buffers"] = options.pop("update_buffers")
        # Theirs is the number of the first averaged epoch, ours of the last that is not.
        begin = f"{self.begin_epoch - 1} epochs" if self.begin_epoch > 1 else self.begin_iter
        return [native("AverageWeights")(self._kind, begin=begin, **options)]

    def before_train(self, runner: RunnerFacade) -> None:
        if self.begin_iter > runner.max_iters or self.begin_epoch > runner.max_epochs:
            raise AssertionError(
                f"EMAHook begins after the end: begin_iter={self.begin_iter} of "
                f"{runner.max_iters}, begin_epoch={self.begin_epoch} of {runner.max_epochs}."
            )
