"""``vissl.models.heads.mlp``: linear layers, for hooks that give a loss a part of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn


class MLP(nn.Module):
    """Linear layers one after the other.

    Args:
        model_config: The config's section ``MODEL``, with the settings of ``HEAD``.
        dims: The sizes: of the input, and of each layer's output.
        use_bn: Whether batch norm follows a layer.
        use_relu: Whether ReLU follows it.
        use_dropout: Whether dropout follows it.
        use_bias: Whether the layers have a bias.
        skip_last_layer_relu_bn: Whether none of these follows the last layer.
    """

    def __init__(
        self,
        model_config: Mapping[str, Any],
        dims: Sequence[int],
        use_bn: bool = False,
        use_relu: bool = False,
        use_dropout: bool = False,
        use_bias: bool = True,
        skip_last_layer_relu_bn: bool = True,
    ) -> None:
        super().__init__()
        head = model_config["HEAD"]
        layers: list[nn.Module] = []
        for number, (size, next_size) in enumerate(pairwise(dims), start=2):
            linear = nn.Linear(size, next_size, bias=use_bias)
            with torch.no_grad():
                for values in linear.parameters():
                    values.mul_(head["PARAMS_MULTIPLIER"])
            layers.append(linear)
            if number == len(dims) and skip_last_layer_relu_bn:
                break
            if use_bn:
                eps, momentum = head["BATCHNORM_EPS"], head["BATCHNORM_MOMENTUM"]
                layers.append(nn.BatchNorm1d(next_size, eps=eps, momentum=momentum))
            layers += [nn.ReLU(inplace=True)] * use_relu + [nn.Dropout()] * use_dropout
        self.clf = nn.Sequential(*layers)  # VISSL's name, which its checkpoints have.

    def forward(self, batch: Tensor | list[Tensor]) -> Tensor:
        """Return the output of the last layer.

        Args:
            batch: Of shape (samples, size), or with further dimensions of one; also alone in a
                list.
        """
        (inputs,) = batch if isinstance(batch, list) else [batch]
        output: Tensor = self.clf(inputs.reshape(len(inputs), -1))
        return output
