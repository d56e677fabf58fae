"""`default_hook_generator`: make the hooks that a VISSL config enables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hookloop.dialects import ConfigView, require
from hookloop_dialects.vissl.hooks import (
    board_hook,
    deepclusterv2_hooks,
    dino_hooks,
    distillation_hooks,
    ema_hooks,
    ibot_hooks,
    log_hooks,
    moco_hooks,
    swav_hooks,
    swav_momentum_hooks,
    training_hooks,
)


def default_hook_generator(cfg: Mapping[str, Any]) -> list[Any]:
    """Return VISSL's hooks in VISSL's order, with those of the loss that the config names.

    Args:
        cfg: The config with ``HOOKS``, ``MODEL``, ``CHECKPOINT`` and so on.
    """
    config = ConfigView(cfg)
    folder = str(config.find("CHECKPOINT.DIR", "."))
    frequency = config.find("HOOKS.PERF_STATS.PERF_STAT_FREQUENCY")
    hooks: list[Any] = []

    # The defaults are those of VISSL's own config, which a user's config need not repeat.
    def add(flag: str, default: bool, make: Any, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        if config.find(flag, default):
            hooks.append(make(*args, **kwargs))

    add(
        "HOOKS.PERF_STATS.MONITOR_PERF_STATS",
        False,
        log_hooks.LogPerfTimeMetricsHook,
        frequency,
    )
    hooks += _of_loss(config)
    add(
        "HOOKS.MODEL_COMPLEXITY.COMPUTE_COMPLEXITY",
        False,
        training_hooks.SSLModelComplexityHook,
    )
    add("HOOKS.LOG_GPU_STATS", True, log_hooks.LogGpuStatsHook)
    memory = config.find("HOOKS.MEMORY_SUMMARY.LOG_ITERATION_NUM", 0)
    add("HOOKS.MEMORY_SUMMARY.PRINT_MEMORY_SUMMARY", True, log_hooks.LogGpuMemoryHook, memory)
    add("HOOKS.MEMORY_SUMMARY.DUMP_MEMORY_ON_EXCEPTION", False, log_hooks.DumpMemoryOnException)
    if config.find("HOOKS.TENSORBOARD_SETUP.USE_TENSORBOARD", False):
        hooks.append(_tensorboard(config, folder))
    norm = config.find("MODEL.GRAD_CLIP.NORM_TYPE", 2), config.find("MODEL.GRAD_CLIP.MAX_NORM", 1)
    add("MODEL.GRAD_CLIP.USE_GRAD_CLIP", False, training_hooks.GradClipHook, *norm)
    add("MODEL.FSDP_CONFIG.FORCE_SYNC_CUDA", False, training_hooks.CudaSynchronizeHook)
    profiling = config.find("PROFILING", {})
    add("PROFILING.RUN_PROFILER", False, training_hooks.ProfilingHook, profiling)
    if isinstance(profiling, Mapping) and training_hooks.ProfilingHook.is_enabled(profiling):
        hooks.append(training_hooks.ProfilingHook(profiling))
    hooks.append(training_hooks.SetDataSamplerEpochHook())
    add("MODEL.TEMP_FROZEN_PARAMS_ITER_MAP", False, training_hooks.FreezeParametersHook)
    # These two are always there; VISSL has no flag for them.
    hooks.append(log_hooks.LogLossMetricsCheckpointHook())
    hooks.append(log_hooks.LogLossLrEtaHook(folder, frequency))  # type: ignore[arg-type]
    add("METERS.model_output_mask", False, training_hooks.ModelOutputMaskHook)
    add("HOOKS.CHECK_NAN", True, training_hooks.CheckNanLossHook)
    add("HOOKS.CHECK_NAN", True, training_hooks.CheckNanModelOutputHook)
    ema: Any = config.find("HOOKS.EMA_MODEL", ConfigView({}))
    measured = bool(ema.get("ENABLE_EMA_METERS", False))
    if measured or ema.get("SAVE_EMA_MODEL", False):
        settings = ema.get("EMA_CONFIG", {})
        warmup = settings.get("warmup", settings.get("WARMUP", 0.05))
        hooks.append(ema_hooks.EmaHook(measured, ema.get("UPDATE_ITER", 1), warmup))
    return hooks


def _of_loss(config: ConfigView) -> list[Any]:
    """Return the hooks that the loss of a config needs."""
    name = str(config.find("LOSS.name", ""))
    loss: Any = config.find(f"LOSS.{name}", ConfigView({}))
    synced = config.find("MODEL.SYNC_BN_CONFIG.CONVERT_BN_TO_SYNC_BN", False)
    makers: dict[str, Callable[[], list[Any]]] = {
        "swav_loss": lambda: [
            swav_hooks.SwAVUpdateQueueScoresHook(),
            swav_hooks.NormalizePrototypesHook(),
        ],
        "swav_momentum_loss": lambda: [
            swav_momentum_hooks.SwAVMomentumHook(
                loss["momentum"], loss["momentum_eval_mode_iter_start"], loss["crops_for_assign"]
            ),
            swav_momentum_hooks.SwAVMomentumNormalizePrototypesHook(),
        ],
        "dino_loss": lambda: [dino_hooks.DINOHook()],
        "msn_loss": lambda: [dino_hooks.DINOHook()],
        "ibot_loss": lambda: [ibot_hooks.IBOTHook()],
        "deepclusterv2_loss": lambda: [
            deepclusterv2_hooks.InitMemoryHook(),
            deepclusterv2_hooks.ClusterMemoryHook(),
        ],
        "moco_loss": lambda: [moco_hooks.MoCoHook(loss["momentum"], shuffle_batch=not synced)],
    }
    if "distillation" in name and "DISTILLATION" in config:
        return [distillation_hooks.DistillationHook(config["DISTILLATION"])]
    return makers[name]() if name in makers else []


def _tensorboard(config: ConfigView, folder: str) -> board_hook.SSLTensorboardHook:
    require("tensorboard", extra="tensorboard", who="SSLTensorboardHook")
    from torch.utils.tensorboard import SummaryWriter

    setup = config.find("HOOKS.TENSORBOARD_SETUP", ConfigView({}))
    assert isinstance(setup, ConfigView)
    return board_hook.SSLTensorboardHook(
        SummaryWriter(f"{folder}/tb_logs"),
        log_params=bool(setup.get("LOG_PARAMS", False)),
        log_params_gradients=bool(setup.get("LOG_PARAMS_GRADIENTS", False)),
    )
