"""VISSL's logging hooks: losses and rates, metrics with checkpoints, times, GPU memory."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, cast

import torch

from hookloop.dialects import append, to_json, write_portable, write_text
from hookloop_dialects.vissl.classy_vision.hooks.checkpoint_hook import NAME, save_as
from hookloop_dialects.vissl.classy_vision.hooks.classy_hook import QuietHook
from hookloop_dialects.vissl.utils.logger import log_gpu_stats
from hookloop_dialects.vissl.utils.perf_stats import PerfStats

if TYPE_CHECKING:
    from hookloop_dialects.vissl.classy_vision.meters.classy_meter import ClassyMeter
    from hookloop_dialects.vissl.task import Task
    from hookloop_dialects.vissl.views import Meter

_log = logging.getLogger("vissl")


class LogLossLrEtaHook(QuietHook):
    """Write loss, learning rate, times and other hooks' data to the log and ``stdout.json``.

    It writes at iterations 0 and 1, at every fifth up to 100, and at every ``LOG_FREQUENCY``-th
    (10 by default), counted from 0.

    Args:
        checkpoint_folder: Directory of ``stdout.json``.
        btime_freq: Number of last batches to average the time over; None for all.
    """

    def __init__(self, checkpoint_folder: str, btime_freq: int | None = None) -> None:
        super().__init__()
        self.checkpoint_folder = Path(checkpoint_folder)
        self.btime_freq = btime_freq

    @staticmethod
    def print_and_save_meters(
        task: Task,
        train_phase_idx: int,
        meters: Iterable[ClassyMeter | Meter] | None = None,
        metric_key_name_suffix: str = "",
    ) -> None:
        """Log meters and append them to ``metrics.json``; see `save_meters`."""
        save_meters(task, train_phase_idx, meters, metric_key_name_suffix)

    def on_start(self, task: Task) -> None:
        task.additional_log_data = {}

    def on_update(self, task: Task) -> None:
        if not task.train or not task.run.world.is_main:
            return
        iteration = task.iteration  # From 0: VISSL increments it after on_update.
        frequency = cast("int", task.config.find("LOG_FREQUENCY", 10))
        if (
            iteration == 1
            or (frequency > 0 and iteration % frequency == 0)
            or (iteration <= 100 and iteration % 5 == 0)
        ):
            line = self._line(task)
            # In the form that VISSL keeps for programs that read its log.
            shown = [f"[ep: {v}]" if k == "ep" else f"{k}: {v};" for k, v in line.items()]
            _log.info(" ".join(shown))
            append(self.checkpoint_folder / "stdout.json", to_json(line) + "\n")
        task.additional_log_data = {}  # Also without a line: the data is of this iteration.

    def _line(self, task: Task) -> dict[str, object]:
        times = task.batch_time or [0.0]  # Before the first batch has ended there is none.
        mean, recent = sum(times) / len(times), times[-(self.btime_freq or 1) :]
        left = max(0, task.max_iteration - task.iteration)
        loss = task.last_batch.loss
        view = task.optimizer.options_view
        line = {
            "Rank": task.run.world.rank,
            "ep": task.train_phase_idx,
            "iter": task.iteration,
            "lr": [*view.lr] if isinstance(view.lr, list) else round(float(view.lr), 5),
            "loss": None if loss is None else round(float(loss.detach()), 5),
            "btime(ms)": int(1000 * mean),
            "eta": str(timedelta(seconds=int(mean * left))),
            "peak_mem(M)": _peak_memory(task),
            "weight_decay": getattr(view, "weight_decay", None),
        }
        if task.iteration == 1:
            line["max_iterations"] = task.max_iteration
        if self.btime_freq == len(recent):
            rolling = sum(recent) / len(recent)
            line[f"btime({self.btime_freq}iters)(ms)"] = int(1000 * rolling)
            line["rolling_eta"] = str(timedelta(seconds=int(rolling * left)))
        return line | dict(task.additional_log_data)


def _peak_memory(task: Task) -> int:
    return int(torch.cuda.max_memory_allocated() / 1024**2) if task.use_gpu else -1


class LogLossMetricsCheckpointHook(QuietHook):
    """Write ``metrics.json`` and checkpoints, and the batch of an output that is not finite.

    Checkpoints are ``model_phase<n>.torch`` after every ``CHECKPOINT_FREQUENCY``-th train phase (1
    by default), ``model_final_checkpoint_phase<n>.torch`` after the last, and, with
    ``CHECKPOINT_ITER_FREQUENCY``, ``model_iteration<n>.torch``. The newest is also
    ``checkpoint.torch``.

    Args:
        world_size: Not used.
    """

    def __init__(self, world_size: int = 1) -> None:
        super().__init__()
        self.world_size = world_size

    print_and_save_meters = LogLossLrEtaHook.print_and_save_meters

    @staticmethod
    def checkpoint_model(
        task: Task, world_size: int, mode_frequency: int, mode_num: int, mode: str = "phase"
    ) -> None:
        """Request a checkpoint if it is time for one; other hooks of VISSL call this.

        Args:
            task: The task.
            world_size: Not used.
            mode_frequency: Save at every n-th phase or iteration.
            mode_num: The current one.
            mode: ``phase`` or ``iteration``.
        """
        # Counted from 0, so a frequency of 2 saves the first, third, ... phase.
        is_last = mode == "phase" and task.train_phase_idx == task.num_train_phases - 1
        if task.train and (is_last or mode_num % mode_frequency == 0):
            kind = "model_final_checkpoint" if is_last else "model"
            save_as(task, f"{kind}_{mode}{mode_num}.torch", NAME)

    def on_forward(self, task: Task) -> None:
        save_non_finite_output(task)

    def on_step(self, task: Task) -> None:
        frequency = cast("int", task.config.find("CHECKPOINT.CHECKPOINT_ITER_FREQUENCY", -1))
        if frequency > 0:
            self.checkpoint_model(task, self.world_size, frequency, task.iteration, "iteration")

    def on_phase_end(self, task: Task) -> None:
        if task.run.world.is_main:
            save_meters(task, task.train_phase_idx)
        frequency = cast("int", task.config.find("CHECKPOINT.CHECKPOINT_FREQUENCY", 1))
        self.checkpoint_model(task, self.world_size, frequency, task.train_phase_idx)


def save_meters(
    task: Task,
    train_phase_idx: int,
    meters: Iterable[ClassyMeter | Meter] | None = None,
    suffix: str = "",
) -> None:
    """Log the meters of a phase and append them to ``metrics.json``, one line per phase.

    Args:
        task: The task.
        train_phase_idx: Index of the train phase that the numbers belong to.
        meters: The meters; those of the task if none are given.
        suffix: Added to the names, such as ``ema``.
    """
    line: dict[str, object] = {
        "iteration": task.iteration,
        "phase_idx": task.phase_idx,
        "train_phase_idx": train_phase_idx,
    }
    for meter in task.meters if meters is None else meters:
        name = f"{task.phase_type}_{meter.name}{f'_{suffix}' if suffix else ''}"
        line[name] = meter.value
        cast("list[object]", task.metrics.setdefault(name, [])).append(meter.value)
        _log.info("Rank: %s, name: %s, value: %s", task.run.world.rank, name, meter.value)
    append(Path(task.checkpoint_folder) / "metrics.json", to_json(line) + "\n")


def save_non_finite_output(task: Task) -> None:
    """Save checkpoint, batch and output if the output contains NaN or infinity."""
    output, rank = task.last_batch.model_output, task.run.world.rank
    tensors = output if isinstance(output, list | tuple) else [output]
    if all(bool(values.isfinite().all()) for values in tensors if isinstance(values, torch.Tensor)):
        return
    # The run continues, as in VISSL: only CheckNanLossHook stops it.
    _log.warning("The model's output is not finite in iteration %d.", task.iteration)
    folder = Path(task.checkpoint_folder)
    write_portable(folder / f"rank{rank}_model_output.pth", {"output": output})
    write_portable(folder / f"rank{rank}_input_sample.pth", {"sample": task.last_batch.sample})
    save_as(task, f"model_iteration{task.iteration}.torch", NAME)


class LogPerfTimeMetricsHook(QuietHook):
    """Log the mean time of a batch, and of its parts, within phases and at the end of each phase.

    Args:
        log_freq: Batches between two lines; None for no lines within a phase.
    """

    def __init__(self, log_freq: int | None = None) -> None:
        super().__init__()
        self.log_freq = log_freq
        self._began = 0.0
        self._batches = 0

    def on_phase_start(self, task: Task) -> None:
        self._began = perf_counter()
        self._batches = 0
        task.perf_stats = PerfStats()

    def on_loss_and_meter(self, task: Task) -> None:
        self._batches += 1
        if self.log_freq and self._batches % self.log_freq == 0:
            self._log(task)

    def on_phase_end(self, task: Task) -> None:
        self._log(task)

    def _log(self, task: Task) -> None:
        mean = 1000 * (perf_counter() - self._began) / max(1, self._batches)
        _log.info(
            "Average %s batch time (ms) for %d batches: %d", task.phase_type, self._batches, mean
        )
        if task.train and task.perf_stats is not None:
            _log.info("Times within an iteration:\n%s", task.perf_stats.report_str())


class LogGpuStatsHook(QuietHook):
    """Log the output of ``nvidia-smi`` at the start and after 50 batches; nothing without CUDA."""

    def on_start(self, task: Task) -> None:
        self._log(task)

    def on_step(self, task: Task) -> None:
        if task.local_iteration_num == 50:
            self._log(task)

    def _log(self, task: Task) -> None:
        if task.use_gpu and task.run.world.is_main:
            log_gpu_stats()


class LogGpuMemoryHook(QuietHook):
    """Log CUDA's memory summary during one batch; nothing without CUDA.

    Args:
        log_iteration_num: Number of that batch, counted over all phases.
    """

    def __init__(self, log_iteration_num: int = 1) -> None:
        super().__init__()
        self.log_iteration_num = log_iteration_num

    def _log(self, task: Task) -> None:
        if task.use_gpu and task.local_iteration_num == self.log_iteration_num:
            _log.info(torch.cuda.memory_summary())

    on_phase_start = on_forward = on_backward = on_update = _log


class DumpMemoryOnException(QuietHook):
    """Write ``memory_rank_<r>_dump_<iteration>.txt`` when the run fails; on any device."""

    def on_exception(self, task: Task) -> None:
        summary = torch.cuda.memory_summary() if task.use_gpu else "There is no CUDA device.\n"
        # In the run directory. VISSL writes to the current one, where two runs would collide.
        name = f"memory_rank_{task.run.world.rank}_dump_{task.iteration}.txt"
        write_text(Path(task.checkpoint_folder) / name, summary)
