"""Names of MMEngine that this dialect does not offer, and what to use instead."""

from __future__ import annotations

from typing import NoReturn

GRAFT = "install mmengine and use `hookloop run --graft mmengine` (`dialects.graft` in Python)"
"""The other way to run a project: the real package, with our engine in it."""

_WRITER = "the native hook {} among custom_hooks"

MISSING = {
    "WandbVisBackend": _WRITER.format("hookloop.hooks.WriteWandb"),
    "MLflowVisBackend": _WRITER.format("hookloop.hooks.WriteMLflow"),
    **dict.fromkeys(
        ("ClearMLVisBackend", "NeptuneVisBackend", "DVCLiveVisBackend", "AimVisBackend"),
        "LocalVisBackend, TensorboardVisBackend, or a subclass of BaseVisBackend",
    ),
    "FlexibleRunner": "Runner, with launcher='pytorch' for several processes",
    **dict.fromkeys(
        ("MMSeparateDistributedDataParallel", "MMFullyShardedDataParallel"),
        "launcher='pytorch' for several processes",
    ),
    "ApexOptimWrapper": "AmpOptimWrapper",
    "ZeroRedundancyOptimizer": "an optimizer of torch",
    **dict.fromkeys(
        ("HTTPBackend", "LmdbBackend", "MemcachedBackend", "PetrelBackend"),
        "LocalBackend, or a subclass of BaseStorageBackend with register_backend",
    ),
    # No hook file of a public project was found to need them.
    **dict.fromkeys(
        (
            *("BaseDataset", "ClassBalancedDataset", "Compose", "ConcatDataset", "RepeatDataset"),
            *("force_full_init", "dict_from_file", "list_from_file", "Timer", "TimerError"),
            *("call_command", "check_time", "get_installed_path", "install_package"),
            *("is_installed", "convert_sync_batchnorm", "detect_anomalous_params"),
            *("revert_sync_batchnorm", "draw_featmap"),
        ),
        "the real package",
    ),
    "track_progress_rich": "track_parallel_progress",
    **dict.fromkeys(
        (
            "get_deprecated_model_names",
            "get_external_models",
            "get_mmcls_models",
            "get_torchvision_models",
        ),
        "the URL of the file",
    ),
    "turn_on_activation_checkpointing": "torch.utils.checkpoint in the model",
    "STRATEGIES": "launcher='pytorch' for several processes",
    "RunnerTestCase": "hookloop.testing",
    # Whole modules, for `from mmengine import hub`.
    **dict.fromkeys(("analysis", "hub", "infer"), "the project's own functions"),
}


def message_for(name: str) -> str:
    """Return the message that a name is not offered, with the replacement."""
    return f"MMEngine's {name} is not offered by hookloop. Use {MISSING[name]}; or {GRAFT}."


def reject(module: str, name: str) -> NoReturn:
    """Reject the import of a name; the message names the replacement if MMEngine has the name."""
    if name in MISSING:
        # Not an AttributeError: `from module import name` would replace its message.
        raise ImportError(message_for(name), name=module)
    raise AttributeError(
        f"module '{module}' has no attribute '{name}'. If MMEngine has it: {GRAFT}."
    )
