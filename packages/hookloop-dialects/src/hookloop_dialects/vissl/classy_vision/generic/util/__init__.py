"""The stand-in for ``classy_vision.generic.util``."""

from __future__ import annotations

from hookloop_dialects.vissl.classy_vision.generic.classy_checkpoints import (
    CHECKPOINT_FILE,
    flatten_dict,
    get_checkpoint_dict,
    load_and_broadcast_checkpoint,
    load_checkpoint,
    save_checkpoint,
)
from hookloop_dialects.vissl.classy_vision.generic.modes import (
    Timer,
    eval_model,
    get_torch_version,
    is_leaf,
    log_class_usage,
    train_model,
)
from hookloop_dialects.vissl.classy_vision.generic.targets import (
    convert_to_one_hot,
    is_pos_int,
    maybe_convert_to_one_hot,
)
from hookloop_dialects.vissl.classy_vision.generic.transfer import (
    get_batchsize_per_replica,
    get_model_dummy_input,
    recursive_copy_to_device,
    recursive_copy_to_gpu,
)

__all__ = [
    "CHECKPOINT_FILE",
    "Timer",
    "convert_to_one_hot",
    "eval_model",
    "flatten_dict",
    "get_batchsize_per_replica",
    "get_checkpoint_dict",
    "get_model_dummy_input",
    "get_torch_version",
    "is_leaf",
    "is_pos_int",
    "load_and_broadcast_checkpoint",
    "load_checkpoint",
    "log_class_usage",
    "maybe_convert_to_one_hot",
    "recursive_copy_to_device",
    "recursive_copy_to_gpu",
    "save_checkpoint",
    "train_model",
]
