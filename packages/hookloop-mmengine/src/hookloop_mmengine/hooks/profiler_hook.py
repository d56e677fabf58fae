"""``mmengine.hooks.ProfilerHook``: torch's profiler over the first epoch or iterations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from torch.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler

from hookloop.errors import HookError
from hookloop_mmengine.hooks.hook import DATA_BATCH, Hook

if TYPE_CHECKING:
    from hookloop_mmengine.facade import RunnerFacade

Handler = Callable[[profile], None]


class ProfilerHook(Hook):
    """Profile the operators of the first epoch or of the first iterations.

    Args:
        by_epoch: Whether to profile an epoch, which is always the first one.
        profile_times: How many epochs or iterations to profile.
        activity_with_cpu: Whether to record operations of the CPU.
        activity_with_cuda: Whether to record operations of the GPU.
        schedule: Arguments of ``torch.profiler.schedule``.
        on_trace_ready: A function, or ``dict(type="log_trace")`` or ``dict(type="tb_trace")``.
        record_shapes: As in torch's profiler.
        profile_memory: As in torch's profiler.
        with_stack: As in torch's profiler.
        with_flops: As in torch's profiler.
        json_trace_path: The file for a trace that chrome://tracing shows.
    """

    priority = "VERY_LOW"

    def __init__(  # noqa: PLR0913 - MMEngine's signature
        self,
        *,
        by_epoch: bool = True,
        profile_times: int = 1,
        activity_with_cpu: bool = True,
        activity_with_cuda: bool = False,
        schedule: Mapping[str, int] | None = None,
        on_trace_ready: Handler | Mapping[str, object] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        json_trace_path: str | None = None,
    ) -> None:
        if profile_times < 1:
            raise ValueError(f"profile_times should be greater than 0, but got {profile_times}")
        if by_epoch and profile_times > 1:
            raise ValueError(
                f"The profiler will profile 0-{profile_times} epochs, which is too slow: set "
                "by_epoch=False to profile iterations."
            )
        if not (activity_with_cpu or activity_with_cuda):
            raise HookError("ProfilerHook needs activity_with_cpu or activity_with_cuda.")
        if not (on_trace_ready is None or callable(on_trace_ready)):
            _check_handler(on_trace_ready)
        self.by_epoch = by_epoch
        self.profile_times = profile_times
        choices = (
            (ProfilerActivity.CPU, activity_with_cpu),
            (ProfilerActivity.CUDA, activity_with_cuda),
        )
        self.activities = [activity for activity, is_used in choices if is_used]
        self._schedule = schedule
        self.on_trace_ready = on_trace_ready
        self._details = {
            "record_shapes": record_shapes,
            "profile_memory": profile_memory,
            "with_stack": with_stack,
            "with_flops": with_flops,
        }
        self.json_trace_path = json_trace_path
        # None again after the export, so that later iterations cost nothing.
        self._profiler: profile | None = None

    def before_run(self, runner: RunnerFacade) -> None:
        limit = runner.max_epochs if self.by_epoch else runner.max_iters
        # A test alone has no iterations to profile.
        if limit and limit < self.profile_times:
            raise ValueError(
                f"self.profile_times ({self.profile_times}) is greater than the {limit} "
                f"{'epochs' if self.by_epoch else 'iterations'} of the training"
            )
        self._profiler = profile(
            activities=self.activities,
            schedule=schedule(**self._schedule) if self._schedule else None,
            on_trace_ready=self._handler(runner),
            **self._details,  # type: ignore[arg-type]
        )
        self._profiler.start()

    def after_train_iter(
        self,
        runner: RunnerFacade,
        batch_idx: int,
        data_batch: DATA_BATCH = None,
        outputs: dict[str, object] | None = None,
    ) -> None:
        if self._profiler is None:
            return
        self._profiler.step()
        # MMEngine counts an iteration only after its hooks, so `iter` is the index of this one.
        if not self.by_epoch and runner.iter == self.profile_times - 1:
            self._export(runner)

    def after_train_epoch(self, runner: RunnerFacade) -> None:
        if self._profiler is not None and self.by_epoch:
            self._export(runner)

    def after_run(self, runner: RunnerFacade) -> None:
        # Only one profiler can be active: one that is left open would break the next run.
        if self._profiler is not None:
            self._profiler.stop()
            self._profiler = None

    def _handler(self, runner: RunnerFacade) -> Handler | None:
        handler = self.on_trace_ready
        if handler is None or callable(handler):
            return handler
        options = dict(handler)
        if options.pop("type") == "log_trace":
            return partial(_log_trace, runner.logger, options)
        directory = options.pop("dir_name", None) or Path(runner.log_dir) / "tf_tracing_logs"
        return cast("Handler", tensorboard_trace_handler(str(directory), **options))  # type: ignore[arg-type]

    def _export(self, runner: RunnerFacade) -> None:
        if self._profiler is None:
            return
        runner.logger.info("profiler may take a few minutes...")
        self._profiler.stop()
        if self.json_trace_path is not None:
            self._profiler.export_chrome_trace(self.json_trace_path)
        self._profiler = None


def _check_handler(handler: object) -> None:
    kind = handler.get("type") if isinstance(handler, Mapping) else None
    if kind not in ("log_trace", "tb_trace"):
        raise ValueError(f'trace_type should be "log_trace" or "tb_trace", but got {kind!r}')


def _log_trace(logger: object, options: Mapping[str, object], profiler: profile) -> None:
    table = profiler.key_averages().table(
        sort_by=str(options.get("sort_by", "self_cpu_time_total")),
        row_limit=cast("int", options.get("row_limit", 50)),
    )
    logger.info(table)  # type: ignore[attr-defined]


class NPUProfilerHook(Hook):
    """MMEngine's profiler for Ascend NPUs, which is always rejected.

    Args:
        begin: The first iteration to profile.
        end: The iteration after the last one.
        result_path: The directory for the results.
        exit_after_profiling: Whether to exit afterwards.
        use_e2e_profiler: As in torch_npu.
        ge_profiling_to_std_out: As in torch_npu.
    """

    priority = "VERY_LOW"

    def __init__(
        self,
        *,
        begin: int = 0,
        end: int = 1,
        result_path: str = "cann_profiling",
        exit_after_profiling: bool = True,
        use_e2e_profiler: bool = False,
        ge_profiling_to_std_out: bool = False,
    ) -> None:
        if begin >= end:
            raise ValueError(f"begin {begin} should be less than end {end}.")
        raise HookError(
            "NPUProfilerHook needs an Ascend NPU with torch_npu, which hookloop does not support. "
            "On a CPU or GPU use ProfilerHook, or the native ProfileOperators."
        )
