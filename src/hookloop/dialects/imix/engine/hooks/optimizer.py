"""`OptimizerHook` and `Fp16OptimizerHook`: configure the update, which the loop makes."""

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
    """Clip the gradients before each update; the loop makes backward and update.

    A subclass that makes them itself is rejected.

    Args:
        grad_clip: Arguments of torch's ``clip_grad_norm_``, or an object with
            ``max_grad_l2_norm``.
    """

    _level = PriorityStatus.HIGH  # As in iMIX, where this decides when the update is made.
    dialect = "imix"

    def __init__(self, grad_clip: Any = None) -> None:  # noqa: ANN401 - a mapping or an object
        super().__init__()
        self.grad_clip = grad_clip
        for stage in ("before_train_iter", "after_train_iter"):
            if getattr(type(self), stage) is not getattr(HookBase, stage):
                raise HookError(
                    f"{type(self).__name__}.{stage}: an optimizer hook of iMIX makes backward and "
                    "update itself, but here the loop does. Set accumulation, clipping and "
                    "precision with Trainer(accumulate=, clip_norm=, precision=), and change "
                    "gradients in before_update of a native hook."
                )

    def native_hooks(self) -> Sequence[Hook]:
        """Return the clipping hook, or one that does nothing."""
        # Not an empty list, so that the timetable shows the hook.
        if self.grad_clip is None:
            return [_Nothing().named("optimizer_hook")]
        if isinstance(self.grad_clip, Mapping):
            limit, kind = self.grad_clip.get("max_norm"), self.grad_clip.get("norm_type", 2)
        else:
            limit, kind = getattr(self.grad_clip, "max_grad_l2_norm", None), 2
        return [native.ClipGradients(limit, norm_type=float(kind)).named("optimizer_hook")]


class Fp16OptimizerHook(OptimizerHook):
    """Clip, and require half precision: ``Trainer(precision="fp16")``.

    Args:
        grad_clip: See `OptimizerHook`.
        grad_scaler_config: Not used, because the engine scales the loss.
    """

    def __init__(
        self,
        grad_clip: Any = None,  # noqa: ANN401 - a mapping or an object
        grad_scaler_config: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(grad_clip)
        self.grad_scaler_config = grad_scaler_config

    def native_hooks(self) -> Sequence[Hook]:
        """Return the clipping hook and the one that checks the precision."""
        return [*super().native_hooks(), _RequireHalf()]


class _Nothing(Hook):
    """Stand for an optimizer hook without settings."""

    def before_run(self, run: Run) -> None:
        """Do nothing: the loop makes the update."""


class _RequireHalf(Hook):
    """Reject a run in full precision at its first iteration."""

    name = "fp16_optimizer_hook"

    def after_forward(self, run: Run) -> None:
        # Autocast is active only around a forward pass, so this cannot be checked earlier.
        if run.phase == "train" and not torch.is_autocast_enabled(run.device.type):
            raise HookError(
                "Fp16OptimizerHook: the run has full precision. Set Trainer(precision='fp16')."
            )
