"""`OptimizerHook` and `Fp16OptimizerHook`: the loop makes the update, so they only set it up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from hookloop import hooks as native
from hookloop.core.hook import Hook
from hookloop.core.run import Run
from hookloop.dialects.adapter import Catalogued
from hookloop.dialects.imix.engine.hooks.base_hook import HookBase, PriorityStatus
from hookloop.errors import HookError


class OptimizerHook(HookBase, Catalogued):
    """Clip the gradients before each update; backward and update are the loop's.

    A subclass that makes them itself is refused.

    Args:
        grad_clip: Arguments of torch's ``clip_grad_norm_``, or an object with
            ``max_grad_l2_norm``.
    """

    _level = PriorityStatus.HIGH
    dialect = "imix"

    def __init__(self, grad_clip: Any = None) -> None:  # noqa: ANN401 - a mapping or an object
        super().__init__()
        self.grad_clip = grad_clip
        for stage in ("before_train_iter", "after_train_iter"):
            if getattr(type(self), stage) is not getattr(HookBase, stage):
                raise HookError(
                    f"{type(self).__name__}.{stage}: an optimizer hook of iMIX makes backward and "
                    "update itself, here the loop makes them: set accumulation, clipping and "
                    "precision with Trainer(accumulate=, clip_norm=, precision=), and change "
                    "gradients in a native hook's before_update."
                )

    def native_hooks(self) -> Sequence[Hook]:
        """Return the clipping hook, if there is something to clip."""
        if self.grad_clip is None:
            return [_Nothing().named("optimizer_hook")]
        if isinstance(self.grad_clip, Mapping):
            limit, kind = self.grad_clip.get("max_norm"), self.grad_clip.get("norm_type", 2)
        else:
            limit, kind = getattr(self.grad_clip, "max_grad_l2_norm", None), 2
        return [native.ClipGradients(limit, norm_type=float(kind)).named("optimizer_hook")]


class Fp16OptimizerHook(OptimizerHook):
    """Clip, and make sure that the run has half precision: ``Trainer(precision="fp16")``.

    Args:
        grad_clip: See `OptimizerHook`.
        grad_scaler_config: Not needed: the engine scales the loss.
    """

    def __init__(
        self,
        grad_clip: Any = None,  # noqa: ANN401 - a mapping or an object
        grad_scaler_config: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(grad_clip)
        self.grad_scaler_config = grad_scaler_config

    def native_hooks(self) -> Sequence[Hook]:
        """Return the clipping hook and the one that looks."""
        return [*super().native_hooks(), _RequireHalf()]


class _Nothing(Hook):
    """Stands for an optimizer hook that sets nothing up."""

    def before_run(self, run: Run) -> None:
        """Nothing: the loop updates."""


class _RequireHalf(Hook):
    """Refuses a run in full precision, at its first iteration."""

    name = "fp16_optimizer_hook"

    def after_forward(self, run: Run) -> None:
        if run.phase == "train" and not torch.is_autocast_enabled(run.device.type):
            raise HookError(
                "Fp16OptimizerHook: the run has full precision: give Trainer(precision='fp16')."
            )
