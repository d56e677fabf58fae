"""``mmengine.model.weight_init``: functions that initialize one layer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import cast

import torch
from torch import Tensor, nn


def _weight(module: nn.Module) -> Tensor | None:
    # Not the attribute alone: layers without an affine part have a weight that is None.
    return cast("Tensor | None", getattr(module, "weight", None))


def _set_bias(module: nn.Module, bias: float) -> None:
    own = cast("Tensor | None", getattr(module, "bias", None))
    if own is not None:
        nn.init.constant_(own, bias)


def constant_init(module: nn.Module, val: float, bias: float = 0) -> None:
    """Fill the weight and the bias of a layer."""
    if (weight := _weight(module)) is not None:
        nn.init.constant_(weight, val)
    _set_bias(module, bias)


def xavier_init(
    module: nn.Module, gain: float = 1, bias: float = 0, distribution: str = "normal"
) -> None:
    """Initialize a layer as Glorot and Bengio do."""
    draw = _drawn(
        {"uniform": nn.init.xavier_uniform_, "normal": nn.init.xavier_normal_}, distribution
    )
    if (weight := _weight(module)) is not None:
        draw(weight, gain=gain)  # type: ignore[operator]
    _set_bias(module, bias)


def normal_init(module: nn.Module, mean: float = 0, std: float = 1, bias: float = 0) -> None:
    """Draw the weight of a layer from a normal distribution."""
    if (weight := _weight(module)) is not None:
        nn.init.normal_(weight, mean, std)
    _set_bias(module, bias)


def trunc_normal_init(
    module: nn.Module,
    mean: float = 0,
    std: float = 1,
    a: float = -2,
    b: float = 2,
    bias: float = 0,
) -> None:
    """Draw the weight of a layer from a normal distribution that is cut off at ``a`` and ``b``."""
    if (weight := _weight(module)) is not None:
        trunc_normal_(weight, mean, std, a, b)
    _set_bias(module, bias)


def uniform_init(module: nn.Module, a: float = 0, b: float = 1, bias: float = 0) -> None:
    """Draw the weight of a layer from a uniform distribution."""
    if (weight := _weight(module)) is not None:
        nn.init.uniform_(weight, a, b)
    _set_bias(module, bias)


def kaiming_init(
    module: nn.Module,
    a: float = 0,
    mode: str = "fan_out",
    nonlinearity: str = "relu",
    bias: float = 0,
    distribution: str = "normal",
) -> None:
    """Initialize a layer as He and others do."""
    draws = {"uniform": nn.init.kaiming_uniform_, "normal": nn.init.kaiming_normal_}
    draw = _drawn(draws, distribution)
    if (weight := _weight(module)) is not None:
        draw(weight, a=a, mode=mode, nonlinearity=nonlinearity)  # type: ignore[operator]
    _set_bias(module, bias)


def caffe2_xavier_init(module: nn.Module, bias: float = 0) -> None:
    """Initialize a layer as Caffe2 does under the name of Xavier."""
    kaiming_init(module, 1, "fan_in", "leaky_relu", bias, "uniform")


def bias_init_with_prob(prior_prob: float) -> float:
    """Return the bias with which a sigmoid yields a probability.

    >>> round(bias_init_with_prob(0.01), 3)
    -4.595
    """
    return -math.log((1 - prior_prob) / prior_prob)


def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0
) -> Tensor:
    """Draw a tensor from a normal distribution that is cut off at ``a`` and ``b``."""
    # By the inverse of the distribution, and not by torch's own function: it has changed its way,
    # and the same seed should give the same weights as in MMEngine.
    low, high = (math.erf((limit - mean) / (std * math.sqrt(2))) for limit in (a, b))
    with torch.no_grad():
        tensor.uniform_(low, high).erfinv_()
        return tensor.mul_(std * math.sqrt(2)).add_(mean).clamp_(min=a, max=b)


def _drawn(functions: Mapping[str, object], distribution: str) -> object:
    if distribution not in functions:
        raise AssertionError(f"distribution should be uniform or normal, but got {distribution}")
    return functions[distribution]
