"""``mmengine.hooks.PrepareTTAHook``: test-time augmentation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from torch import nn

from hookloop_mmengine.hooks.hook import Hook
from hookloop_mmengine.model.wrappers import unwrapped

if TYPE_CHECKING:
    from hookloop_mmengine.facade import RunnerFacade


class PrepareTTAHook(Hook):
    """Before a test, wrap the model so that the predictions of several views are merged.

    Args:
        tta_cfg: Describes the wrapper, a subclass of ``BaseTTAModel``; the model is its ``module``.
    """

    takes_part_in_training = True

    def __init__(self, tta_cfg: Mapping[str, object]) -> None:
        self.tta_cfg = dict(tta_cfg)

    def before_test(self, runner: RunnerFacade) -> None:
        from hookloop_mmengine.registry import MODELS

        model = unwrapped(runner.model)
        wrapped = cast("nn.Module", MODELS.build({**self.tta_cfg, "module": model}))
        # The wrapper may have parameters or a preprocessor of its own.
        runner.model = wrapped.to(next(model.parameters()).device)
        runner.model.eval()
