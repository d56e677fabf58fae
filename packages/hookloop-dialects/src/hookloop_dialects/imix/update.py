"""An update that an iMIX hook makes: its backward and its step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookloop import Update
from hookloop.dialects import internals_of, plan_of
from hookloop.errors import HookError, ModelError

if TYPE_CHECKING:
    from torch import Tensor

    from hookloop import Hook, Run

# Where hooks change the gradients of an update that the loop makes.
_GRADIENT_POINTS = ("after_backward", "before_update")


class UpdateByHook(Update):
    """Output and loss of an update; backward and step are left to the hook at ``after_backward``.

    Gradients may wait for a later iteration, so checkpoints hold them.
    """

    def zero_grad(self) -> None:
        """Do nothing: the hook decides when gradients are dropped."""

    def record(self, run: Run, loss: Tensor) -> None:
        """Record a copy of the loss, because the hook may change the loss in place."""
        self.begin(run, loss)
        super().record(run, loss.detach().clone())

    def backward(self, loss: Tensor) -> None:
        """Do nothing: the hook does it."""

    def unscale(self) -> None:
        """Do nothing: the hook does it."""

    def apply(self, run: Run) -> None:
        """Do nothing: the hook has done it."""


def left_to(maker: Hook, run: Run, update: Update) -> Update:
    """Return an update that leaves backward and step to a hook.

    Raises:
        HookError: If there are other hooks that would have no effect.
        ModelError: If the Trainer has settings of the update, which would have no effect.
    """
    if run.world.cuts_batches:
        raise HookError(
            f"The hook '{maker.name}' makes the update itself and cannot average the gradients of "
            f"{run.world.logical or run.world.size} ranks: leave it out, and set accumulation, "
            "clipping and precision with Trainer(accumulate=, clip_norm=, precision=)."
        )
    for point in _GRADIENT_POINTS:
        for hook in plan_of(run).calls(point).hooks:
            if hook is not maker and hook.takes_part_in_training:
                raise HookError(
                    f"The hook '{hook.name}' acts on gradients at {point}, when the hook "
                    f"'{maker.name}' has made the update already: leave one of them out."
                )
    if len(update.optimizers) < len(run.optimizers) or type(update) is not Update:
        raise ModelError(
            f"The hook '{maker.name}' makes the update, and step= is "
            f"{'an Update' if type(update) is not Update else 'several'}: leave one of the two "
            "out.",
            argument="step",
        )
    for name, is_set in (
        ("accumulate", internals_of(run).arguments.get("accumulate", 1) != 1),
        ("clip_norm", update.clip_norm is not None),
    ):
        if is_set:
            raise ModelError(
                f"{name}= would have no effect: the hook '{maker.name}' makes the update. Set it "
                "there, or leave the hook out.",
                argument=name,
            )
    # Without the scaler of the run: a hook that scales has one of its own.
    made = UpdateByHook.like(update)
    made.scaler = None
    return made
