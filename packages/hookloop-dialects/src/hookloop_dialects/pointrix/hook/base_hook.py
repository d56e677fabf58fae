"""`Hook`: the base class of Pointrix's hooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookloop.dialects import Names

if TYPE_CHECKING:
    from hookloop_dialects.pointrix.trainer import TrainerFacade

# A path, so that the catalogue is read when a name is looked up.
HOOK_REGISTRY = Names("HOOK_REGISTRY", "hookloop_dialects.pointrix.catalogue:CATALOGUE")


class Hook:
    """A hook; a subclass overrides the methods that it needs."""

    priority = "NORMAL"  # Has no effect, in Pointrix either.
    locations = (
        "before_run",
        "after_load_checkpoint",
        "before_train",
        "before_train_iter",
        "after_train_iter",
        "before_val",
        "before_val_iter",
        "after_val_iter",
        "after_val",
        "before_save_checkpoint",
        "after_train",
        "after_run",
    )

    def before_run(self, trainner: TrainerFacade) -> None:
        """Act before anything else."""

    def after_load_checkpoint(self, trainner: TrainerFacade) -> None:
        """Act after a checkpoint was loaded."""

    def before_train(self, trainner: TrainerFacade) -> None:
        """Act before the training."""

    def before_train_iter(self, trainner: TrainerFacade) -> None:
        """Act before an iteration."""

    def after_train_iter(self, trainner: TrainerFacade) -> None:
        """Act after an iteration."""

    def before_val(self, trainner: TrainerFacade) -> None:
        """Act before a validation."""

    def before_val_iter(self, trainner: TrainerFacade) -> None:
        """Act before a batch of the validation."""

    def after_val_iter(self, trainner: TrainerFacade) -> None:
        """Act after a batch of the validation."""

    def after_val(self, trainner: TrainerFacade) -> None:
        """Act after a validation."""

    def before_save_checkpoint(self, trainner: TrainerFacade) -> None:
        """Act before a checkpoint is written."""

    def after_train(self, trainner: TrainerFacade) -> None:
        """Act after the training, unless it failed."""

    def after_run(self, trainner: TrainerFacade) -> None:
        """Act at the end of the run."""

    def exception(self) -> None:
        """Act when the run fails."""
