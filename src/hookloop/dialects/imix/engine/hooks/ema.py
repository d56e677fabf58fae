"""`EMAIterHook` and `EMAEpochHook`: for models that keep an average of themselves."""

from __future__ import annotations

from typing import Any

from hookloop.dialects.imix.engine.hooks.base_hook import HookBase
from hookloop.errors import HookError


def _averaging(hook: HookBase, method: str) -> Any:  # noqa: ANN401 - the model's own
    """Find a method of the model, within a wrapper if there is one."""
    model = getattr(hook.trainer.model, "module", hook.trainer.model)
    found = getattr(model, method, None)
    if found is None:
        raise HookError(
            f"{type(hook).__name__} calls model.{method}(), which {type(model).__name__} lacks: "
            "hookloop.hooks.AverageWeights() averages the weights of any model."
        )
    return found


class EMAIterHook(HookBase):
    """Call the model's ``init_ema`` before the training and ``update_ema`` after iterations."""

    takes_part_in_training = True

    def before_train(self) -> None:
        _averaging(self, "init_ema")()

    def after_train_iter(self) -> None:
        _averaging(self, "update_ema")()


class EMAEpochHook(HookBase):
    """Call the model's ``save_checkpoint_ema(path, epoch)`` after epochs, and go on without it.

    ``load_bkp_state_dict`` gives the model its own weights back before the next epoch.
    """

    takes_part_in_training = True

    def before_train_epoch(self) -> None:
        if self.trainer.epoch > self.trainer.start_epoch:
            _averaging(self, "load_bkp_state_dict")()

    def after_train_epoch(self) -> None:
        _averaging(self, "save_checkpoint_ema")(self.trainer.work_dir, self.trainer.epoch)
