"""`SSLTensorboardHook`: plot VISSL's curves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hookloop_dialects.vissl.classy_vision.hooks.classy_hook import QuietHook
from hookloop_dialects.vissl.utils.activation_statistics import (
    ActivationStatistics,
    ActivationStatisticsMonitor,
    ActivationStatisticsObserver,
)

if TYPE_CHECKING:
    from hookloop_dialects.vissl.task import Task


class _ToBoard(ActivationStatisticsObserver):
    """Plot what layers compute."""

    def __init__(self, writer: Any) -> None:  # noqa: ANN401 - a SummaryWriter
        self.writer = writer

    def consume(self, stat: ActivationStatistics) -> None:
        self.writer.add_scalar(f"activations/{stat.name}/mean", stat.mean, stat.iteration)
        self.writer.add_scalar(f"activations/{stat.name}/spread", stat.spread, stat.iteration)


class SSLTensorboardHook(QuietHook):
    """Plot loss, learning rate, speed, memory, parameters and meters.

    Args:
        tb_writer: A SummaryWriter.
        log_params: Whether to plot the distribution of every parameter, before the training and
            after each train phase.
        log_params_every_n_iterations: Iterations between two further plots; -1 for none.
        log_params_gradients: Whether to plot the gradients too.
        log_activation_statistics: Iterations between two looks at what layers compute; 0 for none.
    """

    def __init__(
        self,
        tb_writer: Any,  # noqa: ANN401 - a SummaryWriter
        log_params: bool = False,
        log_params_every_n_iterations: int = -1,
        log_params_gradients: bool = False,
        log_activation_statistics: int = 0,
    ) -> None:
        super().__init__()
        self.tb_writer = tb_writer
        self.log_params = log_params
        # Under VISSL's names, which classes that derive from this one use.
        self.log_params_every_n_iterations = log_params_every_n_iterations
        self.log_params_gradients = log_params_gradients
        self.log_activation_statistics = log_activation_statistics
        self.activation_watcher: ActivationStatisticsMonitor | None = None
        if log_activation_statistics > 0:
            self.activation_watcher = ActivationStatisticsMonitor(
                _ToBoard(tb_writer), log_activation_statistics, sample_feature_map=True
            )

    # Each event does what it does in VISSL, because classes that derive from this one replace some.

    def on_start(self, task: Task) -> None:
        if self.activation_watcher is not None and task.run.world.is_main:
            self.activation_watcher.monitor(task.base_model)
            self.activation_watcher.set_iteration(task.iteration)

    def on_phase_start(self, task: Task) -> None:
        if self.log_params and task.run.world.is_main and task.train and task.train_phase_idx == 0:
            self._plot_parameters(task, -1)

    def on_forward(self, task: Task) -> None:
        if self.activation_watcher is not None and task.train:
            self.activation_watcher.set_iteration(task.iteration + 1)
        if self.log_params and self._is_due(task):
            self._plot_parameters(task, task.iteration)

    def on_update(self, task: Task) -> None:
        if not task.run.world.is_main:  # All processes would write the same curves.
            return
        if self.log_params_gradients and self._is_due(task):
            self._plot_gradients(task, task.iteration)
        frequency = int(task.config.find("LOG_FREQUENCY", 10))  # type: ignore[call-overload]
        iteration = task.iteration
        if iteration % frequency == 0 or (iteration <= 100 and iteration % 5 == 0):
            self._plot_progress(task, iteration)

    def on_phase_end(self, task: Task) -> None:
        if not task.run.world.is_main:
            return
        title = "Training" if task.train else "Testing"
        for meter in task.meters:
            for name, outputs in meter.value.items():
                for index, value in outputs.items():
                    tag = f"{title}/{meter.name}_{name}_Output_{index}"
                    self.tb_writer.add_scalar(tag, round(value, 5), task.train_phase_idx)
        if task.train and self.log_params:
            self._plot_parameters(task, task.train_phase_idx)
        if task.train and self.log_params_gradients:
            self._plot_gradients(task, task.train_phase_idx)
        self.tb_writer.flush()

    def on_end(self, task: Task) -> None:
        if self.activation_watcher is not None:
            self.activation_watcher.stop()

    def _is_due(self, task: Task) -> bool:
        every = self.log_params_every_n_iterations
        is_writer = task.train and task.run.world.is_main
        return is_writer and every > 0 and task.iteration % every == 0

    def _plot_progress(self, task: Task, iteration: int) -> None:
        write = self.tb_writer.add_scalar
        if task.last_batch.loss is not None:
            write("Training/Loss", float(task.last_batch.loss.detach()), iteration)
        rate = task.optimizer.options_view.lr
        first = rate[0] if isinstance(rate, list) else rate
        write("Training/Learning_rate", float(first), iteration)
        times = task.batch_time[-50:]  # Recent ones, so that the estimate follows a change.
        if times:
            mean = sum(times) / len(times)
            per_second = task.get_batchsize_per_replica() / mean
            left = max(0, task.max_iteration - iteration)
            write("Speed/Batch_processing_time_ms", int(1000 * mean), iteration)
            write("Speed/img_per_sec_per_gpu", int(per_second), iteration)
            write("Speed/ETA_hours", mean * left / 3600, iteration)

    def _plot_parameters(self, task: Task, step: int) -> None:
        for name, parameter in task.model.named_parameters():
            self.tb_writer.add_histogram(f"Parameters/{name}", parameter.detach(), step)

    def _plot_gradients(self, task: Task, step: int) -> None:
        for name, parameter in task.model.named_parameters():
            if parameter.grad is not None:
                self.tb_writer.add_histogram(f"Gradients/{name}", parameter.grad, step)
