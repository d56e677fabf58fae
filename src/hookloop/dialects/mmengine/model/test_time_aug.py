"""``mmengine.model.BaseTTAModel``: several views of each sample, merged in the test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from torch import nn

from hookloop.dialects.mmengine.model.base_model import BaseModel


class BaseTTAModel(BaseModel):
    """Wraps a model whose test step is made on several views; a subclass merges the predictions.

    Args:
        module: The model: an object, or how to build it.
        data_preprocessor: That of the model, by default.
    """

    def __init__(
        self, module: nn.Module | Mapping[str, object], data_preprocessor: object = None
    ) -> None:
        from hookloop.dialects.mmengine.registry import MODELS

        super().__init__(cast("nn.Module | None", data_preprocessor))
        built = module if isinstance(module, nn.Module) else MODELS.build(module)
        self.module = cast("BaseModel", built)

    def merge_preds(self, data_samples_list: list[list[object]]) -> list[object]:
        """Merge, per sample, the predictions of its views."""
        raise NotImplementedError("Subclass BaseTTAModel and write merge_preds().")

    def test_step(self, data: object) -> list[object]:
        views = (
            [dict(zip(data, values, strict=True)) for values in zip(*data.values(), strict=True)]
            if isinstance(data, Mapping)
            else [list(values) for values in zip(*cast("list[list[object]]", data), strict=True)]
        )
        predictions = [self.module.test_step(view) for view in views]
        return self.merge_preds([list(one) for one in zip(*predictions, strict=True)])

    def forward(self, *args: object, **kwargs: object) -> object:
        raise NotImplementedError("`BaseTTAModel` is only used through test_step.")
