"""What other libraries call our things, so that a message can name ours.

The names are those of Lightning, Ignite, Transformers, Accelerate, Keras, fastai, Catalyst and of
common scripts. `translation` looks a name up whatever its spelling: `lr_scheduler`, `LRScheduler`.
"""

from __future__ import annotations

from collections.abc import Mapping

ARGUMENTS = {
    "max_epochs": "epochs num_epochs n_epochs nb_epochs total_epochs num_train_epochs epoch",
    "max_iters": "max_steps steps num_steps total_steps iters iterations num_iters max_iterations",
    "epoch_iters": "steps_per_epoch epoch_length limit_train_batches",
    "train_data": (
        "train_loader train_dataloader train_dataloaders train_dataset trainset dataloader dataset "
        "data_loader data training_data loader"
    ),
    "val_data": (
        "val_loader val_dataloader val_dataloaders valid_loader valid_data valid_dl val_dataset "
        "valset eval_data eval_dataset eval_loader validation_data dev_data"
    ),
    "test_data": "test_loader test_dataloader test_dataset testset",
    "loss": "loss_fn loss_func loss_function criterion objective",
    "step": "train_step training_step step_fn process_function update_fn",
    "optimizer": "optim optimizers opt optimizer_fn opt_func",
    "schedule": "scheduler schedulers lr_scheduler lr_schedule param_scheduler lr_schedulers",
    "metrics": "metric compute_metrics eval_metrics evaluator",
    "hooks": "callbacks callback cbs handlers plugins extensions",
    "val_every": (
        "val_interval eval_every val_check_interval check_val_every_n_epoch eval_interval "
        "validate_every eval_steps validation_freq"
    ),
    "accumulate": (
        "accumulate_grad_batches gradient_accumulation_steps grad_accum accumulation_steps "
        "update_freq accumulate_steps"
    ),
    "clip_norm": "gradient_clip_val max_grad_norm grad_clip clip_grad clip_grad_norm max_norm clip",
    "precision": "amp fp16 bf16 mixed_precision use_amp half dtype",
    "device": "accelerator devices gpus gpu use_cuda cuda no_cuda",
    "compile": "torch_compile jit",
    "run_dir": (
        "output_dir work_dir default_root_dir save_dir log_dir logdir out_dir exp_dir "
        "checkpoint_dir ckpt_dir"
    ),
    "resume": "resume_from resume_from_checkpoint ckpt_path resume_path auto_resume continue_from",
    "load_from": "checkpoint pretrained init_from weights load_checkpoint",
    "seed": "random_seed random_state manual_seed",
}
"""Arguments of the Trainer, which are the keys of a config, with the names that others use."""

INNER_KEYS = {
    "optimizer.lr": "lr learning_rate base_lr eta",
    "optimizer.weight_decay": "weight_decay wd",
    "optimizer.momentum": "momentum",
    "train_data.batch_size": "batch_size train_batch_size per_device_train_batch_size bs",
    "train_data.num_workers": "num_workers workers",
    "train_data.shuffle": "shuffle",
    "default_hooks.checkpoint": "checkpointing save_every save_steps checkpoint_config",
    "default_hooks.console": "logging log_every logging_steps log_config log_every_n_steps",
    "vars": "variables defaults params config",
}
"""Keys of a config that are settings of a part."""

HOOKS = {
    "StopOnPlateau": "EarlyStopping EarlyStoppingCallback EarlyStopper EarlyStoppingHook StopEarly",
    "SaveCheckpoint": (
        "ModelCheckpoint Checkpoint CheckpointCallback SaveModelCallback BackupAndRestore "
        "DiskSaver Checkpointer SaveModel CheckpointSaver"
    ),
    "AverageWeights": (
        "EMA EMACallback ExponentialMovingAverage ModelEMA ModelEma WeightAveraging "
        "StochasticWeightAveraging SWA EMAHandler EMAWeightAveraging SwaCallback"
    ),
    "StepSchedules": (
        "LRScheduler LearningRateScheduler ParamScheduler SchedulerCallback LRSchedulerCallback"
    ),
    "ScheduleParameter": "LRFinder CosineAnnealingScheduler ParamSchedule LearningRateFinder",
    "ShowProgress": (
        "ProgressBar TQDMProgressBar RichProgressBar ProgressCallback PrinterCallback "
        "ProgbarLogger ProgressBarLogger TqdmProgress Progress"
    ),
    "LogMetrics": "Logger LoggerCallback ConsoleLogger PrintLogger MetricsPrinter LoggerHook",
    "WriteCSV": "CSVLogger CsvLogger CSVWriter",
    "WriteTensorBoard": (
        "TensorBoard TensorBoardLogger TensorboardLogger TensorBoardCallback TensorboardWriter"
    ),
    "WriteWandb": "WandbLogger WandbCallback WandBLogger WandB Wandb WandbMetricsLogger",
    "WriteMLflow": "MLFlowLogger MLflowLogger MLflowCallback MLFlow",
    "WriteTrackio": "TrackioCallback Trackio",
    "WriteMetrics": "JSONLogger JsonLogger JSONLLogger MetricsWriter",
    "StopOnNaN": (
        "TerminateOnNaN TerminateOnNan TerminateOnNaNCallback NaNStopper DetectNaN NanGuard "
        "CheckInvalidLossHook"
    ),
    "StopAfter": "Timer TimeLimit MaxEpochs MaxTime TimerCallback MaxIterations StopTimer",
    "StopOnSignal": "SignalHandler SIGTERMHandler GracefulShutdown",
    "ClipGradients": (
        "GradientClipping GradientClip GradClip GradientClipCallback ClipGrad GradientClipper"
    ),
    "FreezeParameters": "BackboneFinetuning BaseFinetuning Freeze FreezeLayers FreezeCallback",
    "LogMemory": "DeviceStatsMonitor GPUStatsMonitor MemoryMonitor GpuInfo",
    "RecordTimes": "SpeedMonitor TimerHook BasicTimeProfiler TrainingTimer",
    "RecordThroughput": "ThroughputMonitor Throughput",
    "RecordHookTimes": "HandlersTimeProfiler SimpleProfiler CallbackProfiler",
    "ProfileOperators": "PyTorchProfiler Profiler AdvancedProfiler ProfilerHook",
    "CountComplexity": "ModelSummary RichModelSummary FlopsCounter",
    "SavePredictions": "PredictionWriter BasePredictionWriter",
    "SaveConfusionMatrix": "ConfusionMatrix ConfusionMatrixCallback",
    "ComputeStats": "Statistics MetricAggregator",
    "RecomputeBatchNorm": "PreciseBN PreciseBNHook BatchNormRecalibration",
    "MomentumTeacher": "EMATeacher MeanTeacher MomentumUpdate",
    "EmptyCache": "EmptyCacheHook EmptyCudaCache GarbageCollection",
    "SetSamplerEpoch": "DistSamplerSeedHook SamplerSeed",
    "ActOnPlateau": "ReduceLROnPlateauCallback OnPlateau",
    "VisualizePredictions": "Visualizer ImageLogger DetVisualizationHook",
    "ExportModel": "ONNXExport ExportCallback",
    "FunctionHook": "LambdaCallback",
}
"""Our hooks, with what others call the same."""

METHODS = {
    "trainer.train()": "fit run_training start learn train_model fit_one_cycle train_loop",
    "trainer.validate()": "evaluate eval val run_validation",
    "trainer.test()": "run_test predict_test",
    "@trainer.on(...)": "add_event_handler add_callback register_hook register on_event add_hook",
    "trainer.run": "state engine",
    "trainer.run.model": "model module net network",
    "trainer.run.optimizer": "optimizer optim",
    "trainer.run.progress.epoch": "epoch current_epoch",
    "trainer.run.progress.iter": "iter iteration global_step step",
    "trainer.run.metrics": "logged_metrics callback_metrics metrics history",
    "trainer.run.dir": "run_dir log_dir output_dir work_dir default_root_dir",
    "trainer.run.train_data": "train_data train_loader train_dataloader dataloader",
    "trainer.run.val_data": "val_data val_loader val_dataloader",
    "trainer.run.device": "device",
    "trainer.run.hooks": "hooks callbacks",
    "trainer.run.stop(reason)": "stop should_stop terminate",
    "trainer.run.save()": "save save_checkpoint save_model",
    "trainer.run.progress.max_epochs": "max_epochs",
    "trainer.run.progress.max_iters": "max_iters max_steps",
    "trainer.run.outcome": "outcome result results",
}
"""What a Trainer can do and what it holds, with the names under which others look for it."""


def translation(name: str, table: Mapping[str, str]) -> str | None:
    """Return what we call a thing that others call by ``name``.

    >>> translation("lr_scheduler", ARGUMENTS), translation("EarlyStopping", HOOKS)
    ('schedule', 'StopOnPlateau')
    """
    wanted = _folded(name)
    for ours, theirs in table.items():
        if wanted in map(_folded, theirs.split()):
            return ours
    return None


def _folded(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()
