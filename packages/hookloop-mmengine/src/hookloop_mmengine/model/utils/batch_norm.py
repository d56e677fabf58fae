"""``mmengine.model.utils``: exchange batch norm layers that synchronize for others that do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from hookloop_mmengine.utils.dl_utils import mmcv_full_available

_TENSORS = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")


class _BatchNormXd(_BatchNorm):
    """Batch norm for inputs with any number of dimensions."""

    def _check_input_dim(self, input: Tensor) -> None:
        """Accept any number: SyncBatchNorm does so, too."""


def revert_sync_batchnorm(module: nn.Module) -> nn.Module:
    """Return the module with plain batch norm for SyncBatchNorm, which needs several processes."""
    kinds: tuple[type, ...] = (nn.SyncBatchNorm,)
    if mmcv_full_available():
        from mmcv.ops import SyncBatchNorm  # type: ignore[import-not-found, unused-ignore]

        kinds = (*kinds, SyncBatchNorm)
    return _exchanged(module, kinds, _BatchNormXd)


def convert_sync_batchnorm(module: nn.Module, implementation: str = "torch") -> nn.Module:
    """Return the module with SyncBatchNorm for batch norm.

    Args:
        module: The module; its layers are exchanged in place.
        implementation: ``torch``, or ``mmcv`` for the layer of mmcv.
    """
    if implementation == "torch":
        return _exchanged(module, (_BatchNorm,), nn.SyncBatchNorm)
    if implementation != "mmcv":
        raise ValueError(f'sync_bn should be "torch" or "mmcv", but got {implementation}')
    from mmcv.ops import SyncBatchNorm

    return _exchanged(module, (_BatchNorm,), SyncBatchNorm)


def _exchanged(
    module: nn.Module, kinds: tuple[type, ...], make: Callable[..., nn.Module]
) -> nn.Module:
    new = module
    if isinstance(module, kinds):
        old = cast("_BatchNorm", module)
        new = make(old.num_features, old.eps, old.momentum, old.affine, old.track_running_stats)
        # The tensors themselves, so that the optimizer keeps its parameters.
        for name in _TENSORS:
            setattr(new, name, getattr(old, name))
        new.training = old.training
        if hasattr(old, "qconfig"):
            new.qconfig = old.qconfig
    for name, child in module.named_children():
        new.add_module(name, _exchanged(child, kinds, make))
    return new
