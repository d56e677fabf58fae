"""emloop's hooks; a name is imported when it is first used."""

from __future__ import annotations

from hookloop.dialects import lazy_names
from hookloop_dialects.emloop.hooks.abstract_hook import AbstractHook, TrainingTerminated

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
"""The module of each hook."""

__all__ = ["AbstractHook", "TrainingTerminated", *MODULES]


__getattr__, __dir__ = lazy_names(
    __name__, {name: f"{__name__}.{module}" for name, module in MODULES.items()}, __all__
)
