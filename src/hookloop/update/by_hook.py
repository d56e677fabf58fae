"""An update that a hook makes, for systems in which an optimizer hook does so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookloop.engine.hook import Hook
from hookloop.errors import HookError, ModelError
from hookloop.update.update import Make, Update

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from hookloop.data.group_sizes import GroupSizes
    from hookloop.engine.run import Run

# Where hooks change the gradients of an update that the loop makes.
_GRADIENT_POINTS = ("after_backward", "before_update")


class UpdateByHook(Update):
    """Output and loss of an update; backward and step are left to the hook at ``after_backward``.

    Gradients may wait for a later iteration, so checkpoints hold them.

    Args:
        update: The update that the loop would make.
    """

    def __init__(self, update: Update) -> None:
        super().__init__(
            "",
            update.forward,
            update.loss_of,
            update.optimizers,
            counts=update.counts,
            may_skip=update.may_skip,
            missing=update._missing,
        )
        self._whole = update

    def compute(self, run: Run) -> Tensor | None:
        """Compute output and loss as the update would, in its precision."""
        return self._whole.computation(run)

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


def make_by_hook(update: Update) -> Make:
    """Return what computes an update's loss and leaves the rest to a hook."""
    return UpdateByHook(update).make


def maker_of(run: Run) -> Hook | None:
    """Return the hook that makes backward and step, if there is one."""
    return next((hook for hook in run.hooks if hook.makes_update), None)


def check_maker(run: Run, maker: Hook, updates: Sequence[Update], sizes: GroupSizes) -> None:
    """Reject what would have no effect beside a hook that makes the update.

    Raises:
        HookError: If there are two such hooks, or others that would have no effect.
        ModelError: If the Trainer has settings of the update, which would have no effect.
    """
    other = next((hook for hook in run.hooks if hook.makes_update and hook is not maker), None)
    if other is not None:
        raise HookError(
            f"The hooks '{maker.name}' and '{other.name}' both make the update: leave one "
            "of them out."
        )
    _check_run(run, maker)
    if len(updates) > 1 or type(updates[0]) is not Update:
        raise ModelError(
            f"The hook '{maker.name}' makes the update, and step= is "
            f"{'several' if len(updates) > 1 else 'an Update'}: leave one of the two out.",
            argument="step",
        )
    _check_settings(updates[0], sizes, maker)


def _check_run(run: Run, maker: Hook) -> None:
    if not run.world.is_alone:
        raise HookError(
            f"The hook '{maker.name}' makes the update itself and cannot average the gradients of "
            f"{run.world.size} ranks: leave it out, and set accumulation, clipping and precision "
            "with Trainer(accumulate=, clip_norm=, precision=)."
        )
    for point in _GRADIENT_POINTS:
        for hook in run.plan.calls(point).hooks:
            if hook is not maker and hook.takes_part_in_training:
                raise HookError(
                    f"The hook '{hook.name}' acts on gradients at {point}, when the hook "
                    f"'{maker.name}' has made the update already: leave one of them out."
                )


def _check_settings(update: Update, sizes: GroupSizes, maker: Hook) -> None:
    for name, is_set in (
        ("accumulate", not sizes.is_one),
        ("clip_norm", update.clip_norm is not None),
    ):
        if is_set:
            raise ModelError(
                f"{name}= would have no effect: the hook '{maker.name}' makes the update. Set it "
                "there, or leave the hook out.",
                argument=name,
            )
