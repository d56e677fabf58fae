"""Names that other libraries use, so that a message can suggest ours.

The names are those of Lightning, Ignite, Transformers, Accelerate, Keras, fastai, Catalyst and of
common scripts. `translation` ignores case and underscores: `lr_scheduler`, `LRScheduler`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from hookloop.errors import nearest

ARGUMENTS = {
    "max_epochs": "epochs num_epochs n_epochs nb_epochs total_epochs num_train_epochs epoch",
    "max_iters": "max_steps steps num_steps total_steps iters iterations num_iters max_iterations",
    "data.epoch_iters": "steps_per_epoch epoch_length",
    "data.limit": "limits limit_train_batches limit_val_batches limit_test_batches limit_batches",
    "data.overfit": "overfit_batches overfit_on",
    "train_data": (
        "train_loader train_dataloader train_dataloaders train_dataset trainset dataloader dataset "
        "data_loader training_data loader"
    ),
    "val_data": (
        "val_loader val_dataloader val_dataloaders valid_loader valid_data valid_dl val_dataset "
        "valset eval_data eval_dataset eval_loader validation_data dev_data"
    ),
    "data.test": "test_loader test_dataloader test_dataset testset",
    "data.predict": "predict_loader predict_dataloader predict_dataloaders",
    "loss": "loss_fn loss_func loss_function criterion objective",
    "step": "train_step training_step step_fn process_function update_fn",
    "optimizer": "optim optimizers opt optimizer_fn opt_func",
    "schedule": "scheduler schedulers lr_scheduler lr_schedule param_scheduler lr_schedulers",
    "metrics": "metric compute_metrics eval_metrics evaluator",
    "hooks": "callbacks callback cbs handlers plugins extensions",
    "val_every": (
        "val_interval eval_every val_check_interval check_val_every_n_epoch eval_interval "
        "evaluation_strategy eval_strategy "
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
    "setup.deterministic": "use_deterministic_algorithms cudnn_deterministic full_determinism",
    "setup.matmul": "float32_matmul_precision matmul_precision tf32 allow_tf32",
    "setup.prepare": "gradient_checkpointing activation_checkpointing channels_last memory_format",
    "run_dir": (
        "output_dir work_dir default_root_dir save_dir log_dir logdir out_dir exp_dir "
        "checkpoint_dir ckpt_dir"
    ),
    "resume": "resume_from resume_from_checkpoint ckpt_path resume_path auto_resume continue_from",
    "setup.load_from": "checkpoint pretrained init_from weights load_checkpoint",
    "seed": "random_seed random_state manual_seed",
}
"""Settings by their path, as in a config, with the names that others use."""

INNER_KEYS = {
    "optimizer.lr": "lr learning_rate base_lr eta init_lr max_lr",
    "optimizer.weight_decay": "weight_decay wd l2",
    "optimizer.momentum": "momentum",
    "optimizer.betas": "betas adam_beta1 adam_beta2",
    "train_data.batch_size": (
        "batch_size train_batch_size per_device_train_batch_size bs samples_per_gpu"
    ),
    "train_data.num_workers": "num_workers workers dataloader_num_workers workers_per_gpu",
    "train_data.shuffle": "shuffle",
    "train_data.sampler": "sampler",
    "train_data.collate_fn": "collate_fn collate data_collator",
    "train_data.drop_last": "drop_last dataloader_drop_last",
    "train_data.pin_memory": "pin_memory dataloader_pin_memory",
    "default_hooks.checkpoint": (
        "checkpointing save_every save_steps save_interval checkpoint_config enable_checkpointing "
        "save_strategy"
    ),
    "default_hooks.console": (
        "logging log_every logging_steps log_config log_interval log_every_n_steps "
        "enable_progress_bar verbose disable_tqdm"
    ),
    "schedule": "warmup warmup_steps warmup_ratio warmup_epochs lr_config lr_scheduler_type",
    "vars": "variables defaults params config",
}
"""Keys inside the parts of a config, with the names that others use."""

ADVICE = {
    "it belongs to the optimizer, SGD(model.parameters(), lr=...); in a config: optimizer.lr": (
        "lr learning_rate base_lr eta init_lr max_lr"
    ),
    "it belongs to the optimizer, which is given as optimizer=": (
        "weight_decay wd l2 momentum betas adam_beta1 adam_beta2"
    ),
    "it belongs to the DataLoader that is given as train_data=": (
        "batch_size train_batch_size per_device_train_batch_size bs samples_per_gpu num_workers "
        "workers dataloader_num_workers workers_per_gpu shuffle sampler collate_fn collate "
        "data_collator drop_last dataloader_drop_last pin_memory dataloader_pin_memory tokenizer"
    ),
    "a warm-up is a schedule, for example schedule=LinearLR(optimizer, ...)": (
        "warmup warmup_steps warmup_ratio warmup_epochs lr_config lr_scheduler_type"
    ),
    "writers are hooks: hooks=[WriteTensorBoard()], or WriteWandb(), WriteMLflow(), WriteCSV()": (
        "logger loggers report_to tracker trackers log_with visualizer vis_backends tensorboard "
        "wandb use_wandb"
    ),
    "the console is a default hook: default_hooks={'console': ShowProgress(every=10)}, or None": (
        "logging log_every logging_steps log_config log_interval log_every_n_steps verbose "
        "enable_progress_bar disable_tqdm progress_bar progress_bar_refresh_rate"
    ),
    "checkpoints are saved by a default hook: default_hooks={'checkpoint': SaveCheckpoint(...)}": (
        "checkpointing save_every save_steps save_interval checkpoint_config enable_checkpointing "
        "save_strategy save_total_limit"
    ),
    "the best checkpoint is kept by SaveCheckpoint(best='val/loss')": (
        "load_best_model_at_end metric_for_best_model greater_is_better save_best"
    ),
    "the training ends early with hooks=[StopOnPlateau('val/loss', patience=...)]": (
        "patience monitor early_stopping early_stop early_stopping_patience"
    ),
    "a limit in time is a hook: hooks=[StopAfter(minutes=...)]": "max_time time_limit max_hours",
    "averaged weights are a hook: hooks=[AverageWeights()]": "ema use_ema ema_decay swa",
    "profiling is a hook: hooks=[ProfileOperators()]": "profiler profile",
    "a few iterations are max_iters=10": "fast_dev_run overfit_batches num_sanity_val_steps",
    "validation takes all of val_data: give less of it, for example a Subset": "limit_val_batches",
    "limits are max_epochs=, max_iters= and val_every=": "train_cfg val_cfg test_cfg",
    "the scaler comes with precision='fp16'": "scaler grad_scaler",
    "run_dir= names the run's directory": "run_name experiment_name exp_name version project",
    "cudnn.benchmark is torch's own; Setup(deterministic=...) is here": "benchmark cudnn_benchmark",
}
"""What to do instead, with arguments of others that Trainer does not have."""

BASES_OF_HOOKS = (
    *("AbstractHook", "BaseHook", "Callback", "ClassyHook"),
    *("Hook", "HookBase", "LightningCallback", "TrainerCallback"),
)
"""Classes from which hooks derive, here and elsewhere: none of them does anything by itself."""

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
    "StopAfter": (
        "Timer TimeLimit MaxEpochs MaxTime TimerCallback MaxIterations StopTimer EpochStopperHook"
    ),
    "StopOnSignal": "SignalHandler SIGTERMHandler GracefulShutdown",
    "ClipGradients": "GradientClipping GradientClip GradClip ClipGrad GradientClipper",
    "FreezeParameters": "BaseFinetuning Freeze FreezeLayers FreezeCallback",
    "Unfreeze": "BackboneFinetuning GradualUnfreezing UnfreezeLayers",
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
}
"""Our hooks, with the names that others use."""

REMARKS = {
    "keep_best=3 keeps the 3 best by best='val/accuracy', and keep=3 the 3 newest besides.": (
        "save_top_k n_saved"
    ),
}
"""What our argument does, where that of another library does something else."""

HOOK_ARGUMENTS = {
    "metric": "monitor quantity score metric_name key_indicator variable",
    "best": "monitor save_best metric_for_best_model score_function save_best_only",
    "mode": "rule direction goal",
    "rule": "mode direction greater_is_better",
    "patience": "wait num_epochs tolerance early_stopping_patience",
    "min_delta": "delta threshold early_stopping_threshold",
    "threshold": "stopping_threshold baseline target",
    "keep_best": "save_top_k n_saved top_k save_best_k keep_top_k",
    "keep": "max_keep_ckpts save_total_limit max_to_keep keep_last keep_n",
    "every": (
        "interval period frequency freq save_freq every_n_epochs every_n_train_steps log_every "
        "save_steps logging_steps log_every_n_steps log_interval update_freq refresh_rate n_steps "
        "every_n_steps log_freq"
    ),
    "interval": "every period frequency update_every",
    "directory": "dirpath dir log_dir logdir out_dir save_dir output_dir path folder dirname",
    "file": "filename path output_file csv_path filepath",
    "template": "filename filename_prefix file_name name_template",
    "momentum": "decay ema_decay alpha beta",
    "max_norm": "gradient_clip_val clip_val max_grad_norm clip clip_norm value",
    "epochs": "max_epochs num_epochs n_epochs epoch",
    "iterations": "iters max_iters max_steps steps num_steps",
    "minutes": "max_time duration time_limit seconds hours",
    "project": "project_name experiment experiment_name",
    "patterns": "layers modules names params parameters",
    "metrics": "variables names keys columns",
    "variables": "metrics names keys columns",
}
"""Arguments of our hooks, with the names that others use."""

PART_ARGUMENTS = HOOK_ARGUMENTS | {
    "lr": "learning_rate base_lr eta step_length init_lr",
    "weight_decay": "wd l2 l2_reg decay",
    "betas": "beta1 beta2",
    "step_size": "step_epochs decay_epochs",
    "T_max": "t_max max_iters total_steps epochs",
    "batch_size": "bs train_batch_size",
    "num_workers": "workers",
    "total_iters": "warmup_iters warmup_steps",
}
"""Arguments of the objects that a config builds: hooks, optimizers, schedules, data."""

SCHEDULES = {
    "CosineAnnealingLR": "cosine cosine_annealing CosineLR cosine_decay",
    "LinearLR": "linear warmup linear_warmup",
    "StepLR": "step step_lr",
    "MultiStepLR": "multistep multi_step",
    "OneCycleLR": "onecycle one_cycle",
    "ReduceLROnPlateau": "plateau reduce_on_plateau",
    "ExponentialLR": "exponential exp",
    "PolynomialLR": "poly polynomial PolyLR",
    "ConstantLR": "constant",
}
"""Schedules of torch, with the short names that other configs use."""

LOSSES = {
    "cross_entropy": "ce xent crossentropy categorical_crossentropy softmax_loss",
    "mse_loss": "mse l2 mean_squared_error",
    "l1_loss": "l1 mae mean_absolute_error",
    "binary_cross_entropy_with_logits": "bce bce_with_logits bce_logits sigmoid_loss",
    "nll_loss": "nll",
    "smooth_l1_loss": "smooth_l1 huber",
}
"""Losses of torch, with the short names that other configs use."""

POINTS = {
    "before_run": "on_fit_start setup on_train_setup on_init",
    "before_train": (
        "on_train_start on_train_begin on_start before_training before_fit on_fit_begin STARTED "
        "on_stage_start before_training_stage"
    ),
    "before_train_epoch": (
        "on_train_epoch_start on_epoch_start on_epoch_begin EPOCH_STARTED before_epoch_start"
    ),
    "before_train_iter": (
        "on_train_batch_start on_batch_start on_batch_begin on_train_batch_begin on_step_begin "
        "ITERATION_STARTED before_batch before_iter on_step before_step before_train_step"
    ),
    "after_forward": "on_forward on_forward_end after_pred on_forward_start",
    "after_loss": "on_loss on_loss_end on_before_backward before_backward on_loss_and_meter",
    "after_backward": "on_after_backward on_backward_end on_backward",
    "before_update": "on_before_optimizer_step on_pre_optimizer_step before_optimizer_step",
    "after_update": "on_optimizer_step on_update after_optimizer_step on_before_zero_grad",
    "after_train_iter": (
        "on_train_batch_end on_batch_end on_step_end on_substep_end ITERATION_COMPLETED "
        "after_batch after_iter after_step after_train_step on_iteration_end on_train_step_end"
    ),
    "after_train_epoch": "on_train_epoch_end after_training_epoch",
    "after_epoch": "on_epoch_end EPOCH_COMPLETED end_epoch",
    "before_val": (
        "on_validation_start on_validation_begin on_test_begin before_validate on_evaluate_begin "
        "on_val_start"
    ),
    "before_val_epoch": "on_validation_epoch_start on_val_epoch_start",
    "before_val_iter": "on_validation_batch_start on_test_batch_begin on_val_batch_start",
    "after_val_iter": (
        "on_validation_batch_end on_test_batch_end on_prediction_step on_val_batch_end "
        "after_val_step"
    ),
    "after_val_epoch": (
        "on_validation_epoch_end on_evaluate on_val_epoch_end after_validate on_log "
        "validation_epoch_end"
    ),
    "after_val": "on_validation_end on_val_end on_test_end on_evaluate_end",
    "after_train": (
        "on_train_end on_fit_end after_training after_fit on_end COMPLETED on_stage_end "
        "after_training_stage"
    ),
    "before_test": "on_test_start",
    "before_test_epoch": "on_test_epoch_start",
    "before_test_iter": "on_test_batch_start",
    "after_test_epoch": "on_test_epoch_end",
    "before_save_checkpoint": "on_save_checkpoint",
    "after_save_checkpoint": "on_save on_checkpoint_saved",
    "after_load_checkpoint": "on_load_checkpoint",
    "on_exception": "EXCEPTION_RAISED on_error",
    "after_run": "teardown cleanup on_finish TERMINATE",
}
"""Our mount points, with the names that others use for the same moment."""

RUN = {
    "run.progress.epoch": "epoch current_epoch epochs _epoch cur_epoch",
    "run.progress.iter": (
        "iter iteration step global_step current_step train_step iters _iter cur_iter"
    ),
    "run.progress.max_epochs": "max_epochs _max_epochs",
    "run.progress.max_iters": "max_iters max_steps _max_iters",
    "run.metrics.put(name, value)": "log log_dict add_scalar record put log_metrics report",
    "run.metrics": "logs callback_metrics logged_metrics meters message_hub log_buffer",
    "run.optimizer.param_groups[0]['lr']": "lr learning_rate current_lr get_last_lr",
    "run.model": "net network module pl_module",
    "run.optimizer": "optim opt optim_wrapper",
    "run.dir": "run_dir log_dir work_dir output_dir save_dir default_root_dir _work_dir",
    "run.stop(reason)": "should_stop stop_training terminate should_training_stop interrupt",
    "run.save()": "save_checkpoint should_save",
    "run.validate()": "evaluate should_evaluate val",
    "run.train_data": "train_loader train_dataloader dataloader data_loader loader",
    "run.val_data": "val_loader val_dataloader valid_loader",
    "run.batch": "inputs data data_batch x",
    "run.output": "outputs logits pred preds predictions",
    "run.outcome": "status state result",
    "run.world.rank": "rank global_rank local_rank",
    "run.hooks": "callbacks handlers plan",
    "run.gather(value)": "ranks",
    "run.emit(record)": "outbox",
}
"""What a hook finds in a run, with the names that others use."""

NAMES = {
    "Hook": ("Callback TrainerCallback LambdaCallback AbstractHook HookBase BaseHook"),
    "Trainer": "Engine Runner Learner MainLoop Fabric Accelerator TrainingLoop",
}
"""What is imported from hookloop itself, with the names that others use."""

METHODS = {
    "trainer.train()": "fit run_training start learn train_model fit_one_cycle train_loop",
    "trainer.validate()": "evaluate eval val run_validation",
    "trainer.test()": "run_test predict_test",
    "trainer.predict()": "predictions inference infer",
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
"""Methods and attributes of Trainer, with the names that others use."""


def translation(
    name: str, table: Mapping[str, str], among: Collection[str] | None = None
) -> str | None:
    """Return our name for what others call ``name``, or None.

    Args:
        name: The name that others use.
        table: One of the tables above.
        among: Our names that are possible here; all of them by default.

    >>> translation("lr_scheduler", ARGUMENTS), translation("EarlyStopping", HOOKS)
    ('schedule', 'StopOnPlateau')
    """
    # One name may stand for several of ours: 'monitor' is `metric` in one hook, `best` in another.
    wanted = _folded(name)
    for ours, theirs in table.items():
        if (among is None or ours in among) and wanted in map(_folded, theirs.split()):
            return ours
    return None


def suggestion(name: str, table: Mapping[str, str], options: Iterable[str]) -> str:
    """Return a sentence that suggests our name for a foreign or misspelled one, or an empty text.

    The leading space lets it be appended to any message.

    >>> suggestion("on_epoch_end", POINTS, ["after_epoch"])
    " Did you mean 'after_epoch'?"
    """
    ours = translation(name, table)
    return f" Did you mean '{ours}'?" if ours is not None else nearest(name, options)


def _folded(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()
