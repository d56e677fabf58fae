"""``vissl.utils.tensorboard``: the hook for TensorBoard from a config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hookloop.dialects import require
from hookloop_dialects.vissl.config.attr_dict import AttrDict
from hookloop_dialects.vissl.defaults import DEFAULTS, complete
from hookloop_dialects.vissl.utils.availability import is_tensorboard_available
from hookloop_dialects.vissl.utils.checkpoint import get_checkpoint_folder
from hookloop_dialects.vissl.utils.io import makedir

if TYPE_CHECKING:
    from hookloop_dialects.vissl.hooks.board_hook import SSLTensorboardHook

__all__ = ["get_tensorboard_dir", "get_tensorboard_hook", "is_tensorboard_available"]


def get_tensorboard_dir(cfg: Mapping[str, Any]) -> str:
    """Return ``tb_logs`` in the directory of the checkpoints, which is created."""
    folder = f"{get_checkpoint_folder(cfg)}/tb_logs"
    makedir(folder)
    return folder


def get_tensorboard_hook(cfg: Mapping[str, Any]) -> SSLTensorboardHook:
    """Return the hook as ``HOOKS.TENSORBOARD_SETUP`` of a config describes it."""
    require("tensorboard", extra="tensorboard", who="SSLTensorboardHook")
    from torch.utils.tensorboard import SummaryWriter

    from hookloop_dialects.vissl.hooks.board_hook import SSLTensorboardHook

    whole: Any = AttrDict(complete(cfg, DEFAULTS))
    setup = whole.HOOKS.TENSORBOARD_SETUP
    seconds = int(setup.FLUSH_EVERY_N_MIN * 60)
    return SSLTensorboardHook(
        SummaryWriter(get_tensorboard_dir(whole), flush_secs=seconds),
        log_params=setup.LOG_PARAMS,
        log_params_every_n_iterations=setup.LOG_PARAMS_EVERY_N_ITERS,
        log_params_gradients=setup.LOG_PARAMS_GRADIENTS,
        log_activation_statistics=whole.MONITORING.MONITOR_ACTIVATION_STATISTICS,
    )
