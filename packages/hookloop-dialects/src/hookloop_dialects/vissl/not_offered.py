"""Names that hook files import and mostly do not use; using one is rejected with what to do."""

from __future__ import annotations

from typing import NoReturn

from torch import nn

from hookloop.errors import HookError, ModelError


class FullyShardedDataParallel(nn.Module):
    """fairscale's sharded model; hook files ask whether a model is one, and none is."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise ModelError(
            "Models sharded by fairscale are not offered. The engine shards the run's model: "
            "Trainer(parallel='sharded')."
        )


def fsdp_wrapper(module: object, **kwargs: object) -> NoReturn:
    """Reject the call."""
    raise ModelError(
        "fsdp_wrapper: models sharded by fairscale are not offered. The engine shards the run's "
        "model with Trainer(parallel='sharded'); a teacher of a hook stays whole on each rank."
    )


def fsdp_auto_wrap_bn(module: object) -> NoReturn:
    """Reject the call."""
    fsdp_wrapper(module)


def fsdp_recursive_reset_lazy_init(fsdp_module: object) -> None:
    """Do nothing: no module is sharded by fairscale."""


class LayerwiseMemoryTracker:
    """VISSL's record of the memory of each layer."""

    def __init__(self) -> None:
        raise HookError(
            "LayerwiseMemoryTracker is not offered. Use hookloop.hooks.ProfileOperators(), which "
            "records the memory of each operator."
        )


class ProcessGroupTracker(LayerwiseMemoryTracker):
    """VISSL's record of what processes exchange."""
