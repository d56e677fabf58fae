"""`OptimizerHook` and `Fp16OptimizerHook`: backward, clipping and update.

Each by itself is a native hook, and the loop makes the update. A subclass makes it itself, with the
methods of iMIX that it inherits or overrides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.nn.utils import clip_grad_norm_

from hookloop import Hook, Run
from hookloop import hooks as native
from hookloop.dialects import (
    Catalogued,
    internals_of,
    with_own_values,
)
from hookloop.errors import HookError
from hookloop_dialects.imix.engine.hooks.base_hook import HookBase, PriorityStatus


class OptimizerHook(HookBase, Catalogued):
    """Make the update, with clipping and accumulation.

    Args:
        grad_clip: Arguments of torch's ``clip_grad_norm_``, or an object with
            ``max_grad_l2_norm``.
    """

    _level = PriorityStatus.HIGH  # As in iMIX, where this decides when the update is made.
    dialect = "imix"

    def __init__(self, grad_clip: Any = None) -> None:  # noqa: ANN401 - a mapping or an object
        super().__init__()
        self._grad_clip = grad_clip
        self._user_scale = bool(getattr(grad_clip, "use_scale", False))
        # Disabled, as in iMIX: it only passes the step on.
        self._scaler: Any = torch.amp.GradScaler(enabled=False) if self._user_scale else None

    @property
    def is_plain(self) -> bool:
        """Whether it is one of the two hooks of this module, and not a project's own."""
        return type(self) in (OptimizerHook, Fp16OptimizerHook)

    def native_hooks(self) -> Sequence[Hook]:
        """Return the clipping hook, or one that does nothing, for an update of the loop."""
        # Not an empty list, so that the timetable shows the hook.
        plain: list[Hook] = [_LoopUpdate().named("optimizer_hook")]
        if self._grad_clip is None:
            return plain
        if isinstance(self._grad_clip, Mapping):
            limit, kind = self._grad_clip.get("max_norm"), self._grad_clip.get("norm_type", 2)
        else:
            limit, kind = getattr(self._grad_clip, "max_grad_l2_norm", None), 2
        clip = native.ClipGradients(limit, norm_type=float(kind)).named("optimizer_hook")
        return [clip, _LoopUpdate()]

    # --- the update of a subclass -----------------------------------------------------------------

    def before_train_iter(self) -> None:
        if self.trainer.iter % self.trainer.gradient_accumulation_steps == 0:
            self.trainer.optimizer.zero_grad()

    def after_train_iter(self) -> None:
        steps = self.trainer.gradient_accumulation_steps
        self.trainer.output["loss"] /= steps
        self.trainer.output["loss"].backward()
        if self._grad_clip is not None:
            self._clip_grad_norm()
        if (self.trainer.iter + 1) % steps == 0:
            self._step()

    def _step(self) -> None:
        if self._scaler is None:
            self.trainer.optimizer.step()
        else:
            self._scaler.step(self.trainer.optimizer)
            self._scaler.update()

    def _clip_grad_norm(self) -> None:
        model = self.trainer.model
        parameters = [one for one in model.parameters() if one.grad is not None]
        if not parameters:
            return
        if hasattr(self._grad_clip, "clip_norm_mode"):
            scale = self._scaler.get_scale() if self._user_scale else 1.0
            norm = clip_grad_norm_(parameters, self._grad_clip.max_grad_l2_norm * scale)
        else:
            norm = clip_grad_norm_(parameters, **self._grad_clip)
        self.trainer.log_buffer.put_scalar("grad_norm", norm)


class Fp16OptimizerHook(OptimizerHook):
    """Make the update of a run in half precision: ``Trainer(precision="fp16")``.

    Args:
        grad_clip: See `OptimizerHook`.
        grad_scaler_config: Arguments of the scaler that a subclass uses. By itself the hook does
            not use them, because the engine scales the loss.
    """

    def __init__(
        self,
        grad_clip: Any = None,  # noqa: ANN401 - a mapping or an object
        grad_scaler_config: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(grad_clip)
        self._grad_scaler_config = grad_scaler_config
        self._scaler = None

    def native_hooks(self) -> Sequence[Hook]:
        """Return the clipping hook and the one that checks the precision."""
        return [*super().native_hooks(), _RequireHalf()]

    # --- the update of a subclass -----------------------------------------------------------------

    def before_train(self) -> None:
        device = self.trainer.run.device.type
        self._scaler = torch.amp.GradScaler(device, **(self._grad_scaler_config or {}))

    def after_train_iter(self) -> None:
        steps = self.trainer.gradient_accumulation_steps
        self._scaler.scale(self.trainer.output["loss"] / steps).backward()
        if (self.trainer.iter + 1) % steps:
            return
        # Not within a group, as iMIX does: gradients can be unscaled only once.
        if self._grad_clip is not None:
            self._scaler.unscale_(self.trainer.optimizer)
            self._clip_grad_norm()
        self._step()


class _LoopUpdate(Hook):
    """Stand for an optimizer hook, and reject what the update of the loop does not do."""

    name = "optimizer_hook_settings"

    def before_run(self, run: Run) -> None:
        steps = with_own_values(run.config).get("gradient_accumulation_steps", 1)
        if steps != 1:
            raise HookError(
                f"gradient_accumulation_steps: {steps} in the config has no effect, because the "
                f"loop makes the update: remove it, and set Trainer(accumulate={steps})."
            )


class _RequireHalf(Hook):
    """Reject a run in full precision before it trains."""

    name = "fp16_optimizer_hook"

    def before_train(self, run: Run) -> None:
        if internals_of(run).precision == "fp32":
            raise HookError(
                "Fp16OptimizerHook: the run has full precision. Set Trainer(precision='fp16')."
            )
