"""``mmengine.model.BaseModel``: a model with its own training and evaluation steps."""

from __future__ import annotations

from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn

from hookloop_mmengine.model.base_module import BaseModule

if TYPE_CHECKING:
    from hookloop_mmengine.optim import OptimWrapper


class BaseModel(BaseModule):
    """A model whose ``forward`` has three modes: ``loss``, ``predict`` and ``tensor``.

    Args:
        data_preprocessor: The module that prepares batches, or a dict that describes it.
        init_cfg: How the weights are initialized.
    """

    def __init__(
        self,
        data_preprocessor: nn.Module | Mapping[str, object] | None = None,
        init_cfg: object = None,
    ) -> None:
        super().__init__(init_cfg)
        if data_preprocessor is None:
            data_preprocessor = {"type": "BaseDataPreprocessor"}
        if isinstance(data_preprocessor, nn.Module):
            self.data_preprocessor = data_preprocessor
        elif isinstance(data_preprocessor, Mapping):
            from hookloop_mmengine.registry import MODELS

            self.data_preprocessor = cast("nn.Module", MODELS.build(data_preprocessor))
        else:
            raise TypeError("data_preprocessor should be a `dict` or `nn.Module` instance")

    def train_step(self, data: object, optim_wrapper: OptimWrapper) -> dict[str, Tensor]:
        """Make one iteration: forward, loss, backward and, if it is due, an update."""
        # Forward only: backward must run outside of autocast.
        with optim_wrapper.optim_context(self):
            data = self.data_preprocessor(data, True)
            losses = self._run_forward(data, mode="loss")
        loss, log_vars = self.parse_losses(cast("Mapping[str, Tensor | list[Tensor]]", losses))
        optim_wrapper.update_params(loss)
        return log_vars

    def val_step(self, data: object) -> list[object]:
        """Predict a batch of the validation."""
        data = self.data_preprocessor(data, False)
        return cast("list[object]", self._run_forward(data, mode="predict"))

    def test_step(self, data: object) -> list[object]:
        """Predict a batch of the test."""
        data = self.data_preprocessor(data, False)
        return cast("list[object]", self._run_forward(data, mode="predict"))

    def parse_losses(
        self, losses: Mapping[str, Tensor | list[Tensor]]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the sum of all entries with "loss" in their name, and every entry as a scalar."""
        scalars: dict[str, Tensor] = {}
        for name, value in losses.items():
            if isinstance(value, Tensor):
                scalars[name] = value.mean()
            elif isinstance(value, list | tuple):
                scalars[name] = cast("Tensor", sum(part.mean() for part in value))
            else:
                raise TypeError(f"{name} is not a tensor or list of tensors")
        total = cast("Tensor", sum(value for name, value in scalars.items() if "loss" in name))
        # `loss` first, as in MMEngine.
        return total, OrderedDict([("loss", total), *scalars.items()])

    @abstractmethod
    def forward(
        self, inputs: Tensor, data_samples: list[object] | None = None, mode: str = "tensor"
    ) -> object:
        """Return losses, predictions or tensors, depending on the mode."""

    def _run_forward(self, data: object, mode: str) -> object:
        """Pass the entries of a batch to ``forward`` as its arguments."""
        if isinstance(data, Mapping):
            return self(**data, mode=mode)
        if isinstance(data, list | tuple):
            return self(*data, mode=mode)
        raise TypeError(
            f"Output of `data_preprocessor` should be list, tuple or dict, but got {type(data)}"
        )

    @property
    def device(self) -> torch.device:
        """The device of the model."""
        first = next(self.parameters(), None)
        return first.device if first is not None else torch.device("cpu")
