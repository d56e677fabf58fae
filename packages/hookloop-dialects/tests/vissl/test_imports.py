"""What files of hooks import: every name has to be there under its foreign path."""

import importlib
import sys

import pytest

from hookloop import dialects

CLASSY = {
    "classy_vision": "meters tasks",
    "classy_vision.generic.distributed_util": "all_reduce_max all_reduce_mean all_reduce_sum "
    "barrier broadcast_object gather_from_all get_rank get_world_size "
    "init_distributed_data_parallel_model is_distributed_training_run is_primary",
    "classy_vision.generic.perf_stats": "PerfStats PerfTimer",
    "classy_vision.generic.profiler": "ClassyProfilerNotImplementedError compute_activations "
    "compute_flops count_params profile summarize_profiler_info",
    "classy_vision.generic.registry_utils": "import_all_modules",
    "classy_vision.generic.util": "eval_model flatten_dict get_batchsize_per_replica "
    "get_checkpoint_dict get_model_dummy_input get_torch_version load_checkpoint log_class_usage "
    "maybe_convert_to_one_hot recursive_copy_to_device recursive_copy_to_gpu save_checkpoint "
    "train_model",
    "classy_vision.generic.visualize": "plot_learning_curves plot_model",
    "classy_vision.hooks": "ClassyHook ClassyHookFunctions HOOK_REGISTRY build_hook build_hooks "
    "register_hook",
    "classy_vision.hooks.checkpoint_hook": "CheckpointHook",
    "classy_vision.hooks.classy_hook": "ClassyHook ClassyHookState",
    "classy_vision.hooks.constants": "ClassyHookFunctions",
    "classy_vision.hooks.exponential_moving_average_model_hook": (
        "ExponentialMovingAverageModelHook"
    ),
    "classy_vision.hooks.loss_lr_meter_logging_hook": "LossLrMeterLoggingHook",
    "classy_vision.hooks.model_complexity_hook": "ModelComplexityHook",
    "classy_vision.hooks.model_tensorboard_hook": "ModelTensorboardHook",
    "classy_vision.hooks.output_csv_hook": "OutputCSVHook",
    "classy_vision.hooks.precise_batch_norm_hook": "PreciseBatchNormHook",
    "classy_vision.hooks.profiler_hook": "ProfilerHook",
    "classy_vision.hooks.progress_bar_hook": "ProgressBarHook",
    "classy_vision.hooks.tensorboard_plot_hook": "TensorboardPlotHook",
    "classy_vision.hooks.time_metrics_hook": "TimeMetricsHook",
    "classy_vision.hooks.torchscript_hook": "TorchscriptHook",
    "classy_vision.hooks.visdom_hook": "VisdomHook",
    "classy_vision.losses": "ClassyLoss build_loss register_loss",
    "classy_vision.meters": "AccuracyMeter ClassyMeter PrecisionAtKMeter RecallAtKMeter "
    "build_meter build_meters register_meter",
    "classy_vision.meters.accuracy_meter": "AccuracyMeter",
    "classy_vision.tasks": "ClassificationTask ClassyTask FineTuningTask",
    "classy_vision.tasks.classification_task": "AmpType BroadcastBuffersMode ClassificationTask",
    "classy_vision.tasks.classy_task": "ClassyTask",
}
VISSL = {
    "vissl.config": "AttrDict",
    "vissl.config.attr_dict": "AttrDict",
    "vissl.data": "AirstoreDataset GenericSSLDataset",
    "vissl.hooks": "SSLClassyHookFunctions default_hook_generator",
    "vissl.hooks.deepclusterv2_hooks": "ClusterMemoryHook InitMemoryHook",
    "vissl.hooks.dino_hooks": "DINOHook",
    "vissl.hooks.distillation_hooks": "DistillationHook",
    "vissl.hooks.ema_hooks": "EmaHook",
    "vissl.hooks.grad_clip_hooks": "GradClipHook",
    "vissl.hooks.hook_utils": "MomentumTeacherInLossHook",
    "vissl.hooks.ibot_hooks": "IBOTHook",
    "vissl.hooks.log_hooks": "DumpMemoryOnException LogGpuMemoryHook LogGpuStatsHook "
    "LogLossLrEtaHook LogLossMetricsCheckpointHook LogPerfTimeMetricsHook",
    "vissl.hooks.moco_hooks": "MoCoHook",
    "vissl.hooks.model_output_mask_hook": "ModelOutputMaskHook",
    "vissl.hooks.profiling_hook": "CudaSynchronizeHook ProfilingHook",
    "vissl.hooks.state_update_hooks": "CheckNanLossHook CheckNanModelOutputHook "
    "FreezeParametersHook SSLModelComplexityHook SetDataSamplerEpochHook",
    "vissl.hooks.swav_hooks": "NormalizePrototypesHook SwAVUpdateQueueScoresHook",
    "vissl.hooks.swav_momentum_hooks": "SwAVMomentumHook SwAVMomentumNormalizePrototypesHook",
    "vissl.hooks.tensorboard_hook": "SSLTensorboardHook",
    "vissl.losses.dino_distillation_loss": "DINODistillationLoss",
    "vissl.losses.distillation_loss": "DistillationLoss",
    "vissl.losses.ibot_distillation_loss": "IBOTDistillationLoss",
    "vissl.losses.msn_distillation_loss": "MSNDistillationLoss",
    "vissl.losses.swav_distillation_loss": "SwAVDistillationLoss",
    "vissl.meters": "AccuracyListMeter build_meter",
    "vissl.meters.accuracy_list_meter": "AccuracyListMeter",
    "vissl.models": "build_model register_model",
    "vissl.models.heads": "MLP",
    "vissl.models.model_helpers": "get_no_ddp_model model_output_has_nan",
    "vissl.trainer.train_task": "SelfSupervisionTask",
    "vissl.utils.activation_statistics": "ActivationStatistics ActivationStatisticsMonitor "
    "ActivationStatisticsObserver",
    "vissl.utils.checkpoint": "CheckpointLoader CheckpointWriter get_checkpoint_folder "
    "is_checkpoint_phase",
    "vissl.utils.distributed_utils": "gather_from_all get_rank",
    "vissl.utils.ema_model": "ModelEmaV2",
    "vissl.utils.env": "get_machine_local_and_dist_rank",
    "vissl.utils.fsdp_utils": "fsdp_recursive_reset_lazy_init fsdp_wrapper",
    "vissl.utils.hydra_config": "AttrDict",
    "vissl.utils.io": "load_file makedir save_file",
    "vissl.utils.layer_memory_tracking": "LayerwiseMemoryTracker",
    "vissl.utils.logger": "log_gpu_stats",
    "vissl.utils.misc": "concat_all_gather is_apex_available is_wandb_available",
    "vissl.utils.perf_stats": "PerfStats PerfTimer",
    "vissl.utils.profiler": "create_runtime_profiler record_function",
    "vissl.utils.tensorboard": "get_tensorboard_dir get_tensorboard_hook is_tensorboard_available",
}
# Of these packages the real one is used where it is installed.
BESIDES = {
    "fairscale.nn": "FullyShardedDataParallel",
    "fairscale.nn.data_parallel": "FullyShardedDataParallel",
    "fvcore.common.file_io": "PathManager",
    "fvcore.nn.precise_bn": "get_bn_modules update_bn_stats",
    "iopath.common.file_io": "PathManagerFactory g_pathmgr",
}
EVERY = {**CLASSY, **VISSL, **BESIDES}


@pytest.fixture
def aliased():
    with dialects.alias("vissl"):
        yield


@pytest.mark.parametrize("path", sorted(EVERY))
def test_the_names_are_there(path, aliased):
    found: dict[str, object] = {}
    exec(f"from {path} import {', '.join(EVERY[path].split())}", found)
    assert set(EVERY[path].split()) <= set(found)


def test_what_is_not_there_says_so(aliased):
    with pytest.raises(ModuleNotFoundError, match=r"'vissl.engines' is not offered"):
        importlib.import_module("vissl.engines")
    with pytest.raises(ModuleNotFoundError, match=r"'fvcore.nn.focal_loss' is not offered"):
        importlib.import_module("fvcore.nn.focal_loss")


def test_nothing_stays_behind():
    with dialects.alias("vissl"):
        importlib.import_module("vissl.utils.misc")
    packages = {path.partition(".")[0] for path in EVERY}
    assert not [name for name in sys.modules if name.partition(".")[0] in packages]
