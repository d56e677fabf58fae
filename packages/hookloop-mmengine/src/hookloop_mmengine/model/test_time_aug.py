"""``mmengine.model.BaseTTAModel``: test-time augmentation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from torch import nn

from hookloop_mmengine.model.base_model import BaseModel


class BaseTTAModel(BaseModel):
    """A wrapper that predicts several views of each sample; a subclass merges the predictions.

    Args:
        module: The model, or a dict that describes it.
        data_preprocessor: Prepares batches; the views go through that of the model as well.
    """

    def __init__(
        self, module: nn.Module | Mapping[str, object], data_preprocessor: object = None
    ) -> None:
        from hookloop_mmengine.registry import MODELS

        super().__init__(cast("nn.Module | None", data_preprocessor))
        built = module if isinstance(module, nn.Module) else MODELS.build(module)
        self.module = cast("BaseModel", built)

    def merge_preds(self, data_samples_list: list[list[object]]) -> list[object]:
        """Merge the predictions of the views of each sample."""
        raise NotImplementedError("Subclass BaseTTAModel and define merge_preds().")

    def test_step(self, data: object) -> list[object]:
        # A batch holds, per entry, a list over the views; the model needs a batch per view.
        views = (
            [dict(zip(data, values, strict=True)) for values in zip(*data.values(), strict=True)]
            if isinstance(data, Mapping)
            else [list(values) for values in zip(*cast("list[list[object]]", data), strict=True)]
        )
        predictions = [self.module.test_step(view) for view in views]
        return self.merge_preds([list(views) for views in zip(*predictions, strict=True)])

    def forward(self, *args: object, **kwargs: object) -> object:
        raise NotImplementedError("`BaseTTAModel` is only used through test_step.")
