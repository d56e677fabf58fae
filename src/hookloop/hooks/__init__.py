"""The built-in hooks, one file each; a name is imported when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookloop import peers
from hookloop.arguments import missing_name, snake_case
from hookloop.lazy import load_name

if TYPE_CHECKING:
    from hookloop.hooks.accumulate_variables import AccumulateVariables
    from hookloop.hooks.act_on_plateau import ActOnPlateau
    from hookloop.hooks.answer_requests import AnswerRequests
    from hookloop.hooks.augment_at_test import AugmentAtTest
    from hookloop.hooks.average_weights import AverageWeights
    from hookloop.hooks.classification_metrics import ClassificationMetrics
    from hookloop.hooks.clip_gradients import ClipGradients
    from hookloop.hooks.compute_stats import ComputeStats
    from hookloop.hooks.count_complexity import CountComplexity
    from hookloop.hooks.cut_mix import CutMix
    from hookloop.hooks.detect_anomaly import DetectAnomaly
    from hookloop.hooks.dump_on_exception import DumpOnException
    from hookloop.hooks.empty_cache import EmptyCache
    from hookloop.hooks.export_model import ExportModel
    from hookloop.hooks.freeze_parameters import FreezeParameters
    from hookloop.hooks.log_device import LogDevice
    from hookloop.hooks.log_memory import LogMemory
    from hookloop.hooks.log_metrics import LogMetrics
    from hookloop.hooks.log_variables import LogVariables
    from hookloop.hooks.mask_outputs import MaskOutputs
    from hookloop.hooks.mix_up import MixUp
    from hookloop.hooks.momentum_teacher import MomentumTeacher
    from hookloop.hooks.notify import Notify
    from hookloop.hooks.plot_lines import PlotLines
    from hookloop.hooks.profile_operators import ProfileOperators
    from hookloop.hooks.publish_checkpoint import PublishCheckpoint
    from hookloop.hooks.recompute_batch_norm import RecomputeBatchNorm
    from hookloop.hooks.record_environment import RecordEnvironment
    from hookloop.hooks.record_hook_times import RecordHookTimes
    from hookloop.hooks.record_norms import RecordNorms
    from hookloop.hooks.record_throughput import RecordThroughput
    from hookloop.hooks.record_times import RecordTimes
    from hookloop.hooks.report_trial import ReportTrial
    from hookloop.hooks.requeue import Requeue
    from hookloop.hooks.require_finite_loss import RequireFiniteLoss
    from hookloop.hooks.require_metric import RequireMetric
    from hookloop.hooks.resize_inputs import ResizeInputs
    from hookloop.hooks.roll_back import RollBack
    from hookloop.hooks.save_checkpoint import SaveCheckpoint
    from hookloop.hooks.save_confusion_matrix import SaveConfusionMatrix
    from hookloop.hooks.save_files import SaveFiles
    from hookloop.hooks.save_predictions import SavePredictions
    from hookloop.hooks.schedule_attribute import ScheduleAttribute
    from hookloop.hooks.schedule_parameter import ScheduleParameter
    from hookloop.hooks.set_sampler_epoch import SetSamplerEpoch
    from hookloop.hooks.show_progress import ShowProgress
    from hookloop.hooks.skip_bad_updates import SkipBadUpdates
    from hookloop.hooks.snapshot_memory import SnapshotMemory
    from hookloop.hooks.snapshot_source import SnapshotSource
    from hookloop.hooks.step_schedules import StepSchedules
    from hookloop.hooks.stop_after import StopAfter
    from hookloop.hooks.stop_on_nan import StopOnNaN
    from hookloop.hooks.stop_on_plateau import StopOnPlateau
    from hookloop.hooks.stop_on_signal import StopOnSignal
    from hookloop.hooks.sync_buffers import SyncBuffers
    from hookloop.hooks.synchronize_cuda import SynchronizeCuda
    from hookloop.hooks.trace_run import TraceRun
    from hookloop.hooks.unfreeze import Unfreeze
    from hookloop.hooks.visualize_predictions import VisualizePredictions
    from hookloop.hooks.warm_up_length import WarmUpLength
    from hookloop.hooks.write_clearml import WriteClearML
    from hookloop.hooks.write_comet import WriteComet
    from hookloop.hooks.write_csv import WriteCSV
    from hookloop.hooks.write_metrics import WriteMetrics
    from hookloop.hooks.write_mlflow import WriteMLflow
    from hookloop.hooks.write_tensorboard import WriteTensorBoard
    from hookloop.hooks.write_to import WriteTo
    from hookloop.hooks.write_trackio import WriteTrackio
    from hookloop.hooks.write_wandb import WriteWandb

__all__ = [
    "AccumulateVariables",
    "ActOnPlateau",
    "AnswerRequests",
    "AugmentAtTest",
    "AverageWeights",
    "ClassificationMetrics",
    "ClipGradients",
    "ComputeStats",
    "CountComplexity",
    "CutMix",
    "DetectAnomaly",
    "DumpOnException",
    "EmptyCache",
    "ExportModel",
    "FreezeParameters",
    "LogDevice",
    "LogMemory",
    "LogMetrics",
    "LogVariables",
    "MaskOutputs",
    "MixUp",
    "MomentumTeacher",
    "Notify",
    "PlotLines",
    "ProfileOperators",
    "PublishCheckpoint",
    "RecomputeBatchNorm",
    "RecordEnvironment",
    "RecordHookTimes",
    "RecordNorms",
    "RecordThroughput",
    "RecordTimes",
    "ReportTrial",
    "Requeue",
    "RequireFiniteLoss",
    "RequireMetric",
    "ResizeInputs",
    "RollBack",
    "SaveCheckpoint",
    "SaveConfusionMatrix",
    "SaveFiles",
    "SavePredictions",
    "ScheduleAttribute",
    "ScheduleParameter",
    "SetSamplerEpoch",
    "ShowProgress",
    "SkipBadUpdates",
    "SnapshotMemory",
    "SnapshotSource",
    "StepSchedules",
    "StopAfter",
    "StopOnNaN",
    "StopOnPlateau",
    "StopOnSignal",
    "SyncBuffers",
    "SynchronizeCuda",
    "TraceRun",
    "Unfreeze",
    "VisualizePredictions",
    "WarmUpLength",
    "WriteCSV",
    "WriteClearML",
    "WriteComet",
    "WriteMLflow",
    "WriteMetrics",
    "WriteTensorBoard",
    "WriteTo",
    "WriteTrackio",
    "WriteWandb",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        ours = peers.translation(name, peers.HOOKS)
        raise missing_name(__name__, name, ours and f"from hookloop.hooks import {ours}", __all__)
    # A hook is in the file of its name; tests/test_shape.py checks that.
    return load_name(globals(), f"hookloop.hooks.{snake_case(name)}", name)


def __dir__() -> list[str]:
    return __all__
