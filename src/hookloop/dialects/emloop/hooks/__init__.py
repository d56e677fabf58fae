"""emloop's hooks; a name is imported when it is first used."""

from __future__ import annotations

from importlib import import_module

from hookloop.dialects.emloop.hooks.abstract_hook import AbstractHook, TrainingTerminated

MODULES = {
    "AccumulateVariables": "accumulate_variables",
    "Benchmark": "benchmark",
    "CatchSigint": "catch_sigint",
    "Check": "check",
    "ClassificationMetrics": "classification_metrics",
    "ComputeStats": "compute_stats",
    "EveryNEpoch": "every_n_epoch",
    "Flatten": "flatten",
    "LogDir": "log_dir",
    "LogProfile": "log_profile",
    "LogVariables": "log_variables",
    "LogitsToCsv": "logits_to_csv",
    "OnPlateau": "on_plateau",
    "PlotLines": "plot_lines",
    "SaveBest": "save",
    "SaveConfusionMatrix": "save_cm",
    "SaveEvery": "save",
    "SaveFile": "save_file",
    "SaveLatest": "save",
    "SaveMasks": "save_masks",
    "SequenceToCsv": "sequence_to_csv",
    "ShowProgress": "show_progress",
    "SkipZerothEpoch": "zeroth_epoch",
    "StopAfter": "stop_after",
    "StopOnNaN": "stop_on_nan",
    "StopOnPlateau": "stop_on_plateau",
    "TrainingTrace": "training_trace",
    "WriteCSV": "write_csv",
    "WriteTensorBoard": "write_tensorboard",
}
"""Where each hook is."""

__all__ = ["AbstractHook", "TrainingTerminated", *MODULES]


def __getattr__(name: str) -> object:
    if name not in MODULES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    value = getattr(import_module(f"{__name__}.{MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
