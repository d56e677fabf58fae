"""``mmengine.utils.dl_utils``: questions about the layers of a model."""

from __future__ import annotations

from importlib.util import find_spec

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm


def is_norm(layer: nn.Module, exclude: type | tuple[type, ...] | None = None) -> bool:
    """Return whether a layer normalizes; layers of the excluded types do not count."""
    excluded = exclude if isinstance(exclude, tuple) else () if exclude is None else (exclude,)
    if not all(isinstance(kind, type) for kind in excluded):
        raise TypeError(
            f'"exclude" must be either None or type or a tuple of types, but got {exclude}'
        )
    kinds = (_BatchNorm, _InstanceNorm, nn.GroupNorm, nn.LayerNorm)
    return isinstance(layer, kinds) and not isinstance(layer, excluded)


def has_batch_norm(model: nn.Module) -> bool:
    """Return whether a model has a batch norm layer."""
    return any(isinstance(module, _BatchNorm) for module in model.modules())


def mmcv_full_available() -> bool:
    """Return whether mmcv is installed with its compiled operators."""
    try:
        return find_spec("mmcv._ext") is not None
    except ImportError:
        return False
