"""The built-in hooks, one file each, by purpose; a name is imported when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookloop import peers
from hookloop.arguments import missing_name, snake_case
from hookloop.lazy import load_name, module_in_rooms

if TYPE_CHECKING:
    from hookloop.hooks.data.cut_mix import CutMix
    from hookloop.hooks.data.mask_outputs import MaskOutputs
    from hookloop.hooks.data.mix_up import MixUp
    from hookloop.hooks.data.resize_inputs import ResizeInputs
    from hookloop.hooks.data.set_sampler_epoch import SetSamplerEpoch
    from hookloop.hooks.data.warm_up_length import WarmUpLength
    from hookloop.hooks.ending.answer_requests import AnswerRequests
    from hookloop.hooks.ending.report_trial import ReportTrial
    from hookloop.hooks.ending.requeue import Requeue
    from hookloop.hooks.ending.require_metric import RequireMetric
    from hookloop.hooks.ending.stop_after import StopAfter
    from hookloop.hooks.ending.stop_on_plateau import StopOnPlateau
    from hookloop.hooks.ending.stop_on_signal import StopOnSignal
    from hookloop.hooks.guarding.check_arithmetic import CheckArithmetic
    from hookloop.hooks.guarding.detect_anomaly import DetectAnomaly
    from hookloop.hooks.guarding.dump_on_exception import DumpOnException
    from hookloop.hooks.guarding.plant_fault import PlantFault
    from hookloop.hooks.guarding.require_finite_loss import RequireFiniteLoss
    from hookloop.hooks.guarding.roll_back import RollBack
    from hookloop.hooks.guarding.skip_bad_updates import SkipBadUpdates
    from hookloop.hooks.guarding.stop_on_nan import StopOnNaN
    from hookloop.hooks.measuring.count_complexity import CountComplexity
    from hookloop.hooks.measuring.empty_cache import EmptyCache
    from hookloop.hooks.measuring.log_device import LogDevice
    from hookloop.hooks.measuring.log_memory import LogMemory
    from hookloop.hooks.measuring.profile_operators import ProfileOperators
    from hookloop.hooks.measuring.record_environment import RecordEnvironment
    from hookloop.hooks.measuring.record_fingerprints import RecordFingerprints
    from hookloop.hooks.measuring.record_hook_times import RecordHookTimes
    from hookloop.hooks.measuring.record_norms import RecordNorms
    from hookloop.hooks.measuring.record_throughput import RecordThroughput
    from hookloop.hooks.measuring.record_times import RecordTimes
    from hookloop.hooks.measuring.snapshot_memory import SnapshotMemory
    from hookloop.hooks.measuring.synchronize_cuda import SynchronizeCuda
    from hookloop.hooks.metrics.accumulate_variables import AccumulateVariables
    from hookloop.hooks.metrics.augment_at_test import AugmentAtTest
    from hookloop.hooks.metrics.classification_metrics import ClassificationMetrics
    from hookloop.hooks.metrics.compute_stats import ComputeStats
    from hookloop.hooks.metrics.save_confusion_matrix import SaveConfusionMatrix
    from hookloop.hooks.metrics.save_predictions import SavePredictions
    from hookloop.hooks.saving.export_model import ExportModel
    from hookloop.hooks.saving.publish_checkpoint import PublishCheckpoint
    from hookloop.hooks.saving.save_checkpoint import SaveCheckpoint
    from hookloop.hooks.saving.save_files import SaveFiles
    from hookloop.hooks.saving.snapshot_source import SnapshotSource
    from hookloop.hooks.schedules.act_on_plateau import ActOnPlateau
    from hookloop.hooks.schedules.schedule_attribute import ScheduleAttribute
    from hookloop.hooks.schedules.schedule_parameter import ScheduleParameter
    from hookloop.hooks.schedules.step_schedules import StepSchedules
    from hookloop.hooks.showing.log_metrics import LogMetrics
    from hookloop.hooks.showing.log_variables import LogVariables
    from hookloop.hooks.showing.notify import Notify
    from hookloop.hooks.showing.plot_lines import PlotLines
    from hookloop.hooks.showing.show_progress import ShowProgress
    from hookloop.hooks.showing.trace_run import TraceRun
    from hookloop.hooks.showing.visualize_predictions import VisualizePredictions
    from hookloop.hooks.weights.average_weights import AverageWeights
    from hookloop.hooks.weights.clip_gradients import ClipGradients
    from hookloop.hooks.weights.freeze_parameters import FreezeParameters
    from hookloop.hooks.weights.momentum_teacher import MomentumTeacher
    from hookloop.hooks.weights.recompute_batch_norm import RecomputeBatchNorm
    from hookloop.hooks.weights.sync_buffers import SyncBuffers
    from hookloop.hooks.weights.unfreeze import Unfreeze
    from hookloop.hooks.writing.write_clearml import WriteClearML
    from hookloop.hooks.writing.write_comet import WriteComet
    from hookloop.hooks.writing.write_csv import WriteCSV
    from hookloop.hooks.writing.write_metrics import WriteMetrics
    from hookloop.hooks.writing.write_mlflow import WriteMLflow
    from hookloop.hooks.writing.write_tensorboard import WriteTensorBoard
    from hookloop.hooks.writing.write_to import WriteTo
    from hookloop.hooks.writing.write_trackio import WriteTrackio
    from hookloop.hooks.writing.write_wandb import WriteWandb

__all__ = [
    "AccumulateVariables",
    "ActOnPlateau",
    "AnswerRequests",
    "AugmentAtTest",
    "AverageWeights",
    "CheckArithmetic",
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
    "PlantFault",
    "PlotLines",
    "ProfileOperators",
    "PublishCheckpoint",
    "RecomputeBatchNorm",
    "RecordEnvironment",
    "RecordFingerprints",
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


def module_of(name: str) -> str:
    """Return the module of a built-in hook: the file of its name, in one of the rooms."""
    return module_in_rooms(__name__, __path__, snake_case(name))


def __getattr__(name: str) -> object:
    if name not in __all__:
        ours = peers.translation(name, peers.HOOKS)
        raise missing_name(__name__, name, ours and f"from hookloop.hooks import {ours}", __all__)
    return load_name(globals(), module_of(name), name)


def __dir__() -> list[str]:
    return __all__
