"""What `task.config` has besides the config of the run: VISSL's own defaults.

VISSL merges a user's config into a complete one, so its hooks read these without asking.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

DEFAULTS: Mapping[str, object] = MappingProxyType(
    {
        "LOG_FREQUENCY": 10,
        "TEST_ONLY": False,
        "SEED_VALUE": 0,
        "CHECKPOINT": {
            "DIR": ".",
            "BACKEND": "disk",
            "APPEND_DISTR_RUN_ID": False,
            "AUTO_RESUME": True,
            "CHECKPOINT_FREQUENCY": 1,
            "CHECKPOINT_ITER_FREQUENCY": -1,
            "OVERWRITE_EXISTING": False,
        },
        "DATA": {"TRAIN": {}, "TEST": {}},
        "DISTRIBUTED": {"NUM_NODES": 1, "RUN_ID": "auto", "BACKEND": "nccl"},
        "HOOKS": {
            "CHECK_NAN": True,
            "LOG_GPU_STATS": True,
            "MEMORY_SUMMARY": {
                "DUMP_MEMORY_ON_EXCEPTION": False,
                "LOG_ITERATION_NUM": 0,
                "PRINT_MEMORY_SUMMARY": True,
            },
            "MODEL_COMPLEXITY": {"COMPUTE_COMPLEXITY": False, "INPUT_SHAPE": [3, 224, 224]},
            "PERF_STATS": {
                "MONITOR_PERF_STATS": False,
                "PERF_STAT_FREQUENCY": -1,
                "ROLLING_BTIME_FREQ": -1,
            },
            "TENSORBOARD_SETUP": {
                "USE_TENSORBOARD": False,
                "LOG_PARAMS": True,
                "LOG_PARAMS_EVERY_N_ITERS": 310,
                "LOG_PARAMS_GRADIENTS": True,
                "FLUSH_EVERY_N_MIN": 5,
            },
            "EMA_MODEL": {
                "ENABLE_EMA_METERS": False,
                "SAVE_EMA_MODEL": False,
                "UPDATE_ITER": 1,
                "EMA_DEVICE": "gpu",
                "EMA_CONFIG": {"decay": 0.9999, "warmup": 0.05},
            },
        },
        "LOSS": {"name": ""},
        "METERS": {"name": "", "names": [], "enable_training_meter": True},
        "MODEL": {
            "HEAD": {
                "BATCHNORM_EPS": 1e-5,
                "BATCHNORM_MOMENTUM": 0.1,
                "PARAMS": [],
                "PARAMS_MULTIPLIER": 1.0,
            },
            "GRAD_CLIP": {"USE_GRAD_CLIP": False, "NORM_TYPE": 2, "MAX_NORM": 1},
            "SYNC_BN_CONFIG": {"CONVERT_BN_TO_SYNC_BN": False},
            "TEMP_FROZEN_PARAMS_ITER_MAP": [],
            "TRUNK": {"NAME": "", "VISION_TRANSFORMERS": {"DROP_PATH_RATE": 0.0}},
        },
        "MONITORING": {"MONITOR_ACTIVATION_STATISTICS": 0},
        "OPTIMIZER": {},
        "PROFILING": {
            "START_ITERATION": 0,
            "WARMUP_ITERATIONS": 0,
            "NUM_ITERATIONS": 10,
            "STOP_TRAINING_AFTER_PROFILING": False,
            "OUTPUT_FOLDER": ".",
            "PROFILED_RANKS": [0, 1],
            "MEMORY_PROFILING": {"TRACK_BY_LAYER_MEMORY": False},
            "RUNTIME_PROFILING": {
                "LEGACY_PROFILER": False,
                "PROFILE_CPU": True,
                "PROFILE_GPU": True,
                "USE_PROFILER": False,
            },
        },
    }
)


def complete(config: Mapping[str, object], base: Mapping[str, object]) -> dict[str, object]:
    """Return a config with what it lacks from another one, section by section.

    >>> complete({"A": {"x": 1}}, {"A": {"x": 0, "y": 2}, "B": 3})
    {'A': {'x': 1, 'y': 2}, 'B': 3}
    """
    merged = dict(config)
    for name, value in base.items():
        own = merged.get(name, value)
        if isinstance(own, Mapping) and isinstance(value, Mapping):
            own = complete(own, value)
        merged[name] = own
    return merged
