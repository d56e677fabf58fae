"""``mmengine.hooks.PrepareTTAHook``: several views of each sample in the test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from torch import nn

from hookloop.dialects.mmengine.hooks.hook import Hook

if TYPE_CHECKING:
    from hookloop.dialects.mmengine.facade import RunnerFacade


class PrepareTTAHook(Hook):
    """Wrap the model in one that merges the predictions of several views, before a test.

    Args:
        tta_cfg: How to build the wrapper, a subclass of ``BaseTTAModel``; it is given the model.
    """

    takes_part_in_training = True

    def __init__(self, tta_cfg: Mapping[str, object]) -> None:
        self.tta_cfg = dict(tta_cfg)

    def before_test(self, runner: RunnerFacade) -> None:
        from hookloop.dialects.mmengine.registry import MODELS

        model = runner.model
        wrapped = cast("nn.Module", MODELS.build({**self.tta_cfg, "module": model}))
        runner.model = wrapped.to(next(model.parameters()).device)
        runner.model.eval()
