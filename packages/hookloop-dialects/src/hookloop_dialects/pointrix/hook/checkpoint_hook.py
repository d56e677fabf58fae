"""`CheckPointHook`: save checkpoints under Pointrix's names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookloop_dialects.pointrix.hook.base_hook import Hook

if TYPE_CHECKING:
    from hookloop_dialects.pointrix.trainer import TrainerFacade


class CheckPointHook(Hook):
    """Save every ``cfg.save_step`` steps and at the end.

    At a step the file is ``chkpnt<step>.pth``, and ``<step>.ply`` if the model has a point cloud.
    At the end it is ``chkpnt<step>.pth`` with five digits, for the step after the last.
    """

    def after_train_iter(self, trainner: TrainerFacade) -> None:
        if trainner.global_step % int(trainner.cfg.save_step) == 0:  # type: ignore[call-overload]
            # Pointrix requires a point cloud. Here a model without one is saved all the same.
            save = getattr(getattr(trainner.model, "point_cloud", None), "save_ply", None)
            if callable(save):
                save(str(trainner.exp_dir / f"{trainner.global_step:05d}.ply"))
            trainner.save_model()

    def after_train(self, trainner: TrainerFacade) -> None:
        trainner.save_model(trainner.exp_dir / f"chkpnt{trainner.global_step:05d}.pth")
