"""The hooks that a VISSL config enables."""

import pytest
from tests.vissl.phases import train

from hookloop_dialects.vissl.hooks import default_hook_generator


def test_the_generator_makes_the_hooks_that_a_config_asks_for(tmp_path):
    config = {
        "HOOKS": {"PERF_STATS": {"MONITOR_PERF_STATS": True}, "CHECK_NAN": True},
        "MODEL": {"GRAD_CLIP": {"USE_GRAD_CLIP": True, "MAX_NORM": 3}},
        "CHECKPOINT": {"DIR": str(tmp_path / "run")},
    }
    hooks = default_hook_generator(config)
    assert [type(hook).__name__ for hook in hooks] == [
        "LogPerfTimeMetricsHook",
        "LogGpuStatsHook",
        "LogGpuMemoryHook",
        "GradClipHook",
        "SetDataSamplerEpochHook",
        "LogLossMetricsCheckpointHook",
        "LogLossLrEtaHook",
        "CheckNanLossHook",
        "CheckNanModelOutputHook",
    ]
    (tmp_path / "run").mkdir()
    assert train(tmp_path, *hooks, setup={"config": config}).run.outcome.status == "completed"


def names(config):
    return [type(hook).__name__ for hook in default_hook_generator(config)]


DEFAULT = [
    "LogGpuStatsHook",
    "LogGpuMemoryHook",
    "SetDataSamplerEpochHook",
    "LogLossMetricsCheckpointHook",
    "LogLossLrEtaHook",
    "CheckNanLossHook",
    "CheckNanModelOutputHook",
]


def test_an_empty_config_has_vissls_defaults():
    assert names({}) == DEFAULT


@pytest.mark.parametrize(
    ("config", "added", "after"),
    [
        (
            {"HOOKS": {"MODEL_COMPLEXITY": {"COMPUTE_COMPLEXITY": True}}},
            "SSLModelComplexityHook",
            0,
        ),
        ({"MODEL": {"FSDP_CONFIG": {"FORCE_SYNC_CUDA": True}}}, "CudaSynchronizeHook", 2),
        ({"PROFILING": {"RUN_PROFILER": True}}, "ProfilingHook", 2),
        ({"MODEL": {"TEMP_FROZEN_PARAMS_ITER_MAP": [["a", 1]]}}, "FreezeParametersHook", 3),
        ({"METERS": {"model_output_mask": True}}, "ModelOutputMaskHook", 5),
        ({"HOOKS": {"EMA_MODEL": {"SAVE_EMA_MODEL": True}}}, "EmaHook", 7),
    ],
)
def test_a_flag_adds_its_hook_where_vissl_has_it(config, added, after):
    assert names(config) == [*DEFAULT[:after], added, *DEFAULT[after:]]


def test_flags_can_turn_defaults_off():
    summary = {"PRINT_MEMORY_SUMMARY": False, "DUMP_MEMORY_ON_EXCEPTION": True}
    config = {"HOOKS": {"LOG_GPU_STATS": False, "CHECK_NAN": False, "MEMORY_SUMMARY": summary}}
    assert names(config) == ["DumpMemoryOnException", *DEFAULT[2:5]]


def test_arguments_come_from_the_config(tmp_path):
    config = {
        "MODEL": {"GRAD_CLIP": {"USE_GRAD_CLIP": True, "NORM_TYPE": 1, "MAX_NORM": 3}},
        "HOOKS": {"TENSORBOARD_SETUP": {"USE_TENSORBOARD": True, "LOG_PARAMS": True}},
        "CHECKPOINT": {"DIR": str(tmp_path)},
    }
    hooks = {type(hook).__name__: hook for hook in default_hook_generator(config)}
    assert (hooks["GradClipHook"].norm_type, hooks["GradClipHook"].max_norm) == (1, 3)
    board = hooks["SSLTensorboardHook"]
    assert board.log_params and not board.log_params_gradients
    assert board.tb_writer.log_dir == str(tmp_path / "tb_logs")
