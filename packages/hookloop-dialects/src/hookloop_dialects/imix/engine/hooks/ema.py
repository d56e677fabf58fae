"""`EMAIterHook` and `EMAEpochHook`: update models that keep an average of themselves."""

from __future__ import annotations

from typing import Any

from hookloop.errors import HookError
from hookloop_dialects.imix.engine.hooks.base_hook import HookBase


def _model_method(hook: HookBase, method: str) -> Any:  # noqa: ANN401 - the model's own
    """Return a method of the model."""
    # DistributedDataParallel hides the methods of the model that it wraps.
    model = getattr(hook.trainer.model, "module", hook.trainer.model)
    found = getattr(model, method, None)
    if found is None:
        raise HookError(
            f"{type(hook).__name__} calls model.{method}(), which {type(model).__name__} lacks. "
            "Use hookloop.hooks.AverageWeights() to average the weights of any model."
        )
    return found


class EMAIterHook(HookBase):
    """Call the model's ``init_ema`` before the training and ``update_ema`` after iterations."""

    takes_part_in_training = True  # What the model does in these methods is not known.

    def before_train(self) -> None:
        _model_method(self, "init_ema")()

    def after_train_iter(self) -> None:
        _model_method(self, "update_ema")()


class EMAEpochHook(HookBase):
    """Call the model's ``load_bkp_state_dict`` and ``save_checkpoint_ema(path, epoch)``.

    Both after each epoch: the first restores the model's own weights, the second saves the
    averaged ones.
    """

    takes_part_in_training = True

    def after_train_epoch(self) -> None:
        _model_method(self, "load_bkp_state_dict")()
        _model_method(self, "save_checkpoint_ema")(self.trainer.work_dir, self.trainer.epoch)
