"""`SSLTensorboardHook`: plot VISSL's curves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hookloop.dialects.vissl.classy_vision.hooks.classy_hook import QuietHook
from hookloop.errors import HookError

if TYPE_CHECKING:
    from hookloop.dialects.vissl.task import Task


class SSLTensorboardHook(QuietHook):
    """Plot loss, learning rate, speed, memory, parameters and meters.

    Args:
        tb_writer: A SummaryWriter.
        log_params: Whether to plot the distribution of every parameter after each train phase.
        log_params_every_n_iterations: Iterations between two plots of the parameters; -1 for none.
        log_params_gradients: Whether to plot the gradients too.
        log_activation_statistics: Not offered.
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
        if log_activation_statistics:
            raise HookError(
                "SSLTensorboardHook: statistics of activations are not offered. Register a forward "
                "hook on the module and write with run.emit(Histogram(...)) in a native hook."
            )
        self.tb_writer = tb_writer
        self.log_params = log_params
        self.every = log_params_every_n_iterations
        self.log_params_gradients = log_params_gradients

    def on_update(self, task: Task) -> None:
        iteration = task.iteration
        if not task.run.world.is_main:  # All processes would write the same curves.
            return
        if self.every > 0 and iteration % self.every == 0:
            self._plot_parameters(task, iteration)
        frequency = int(task.config.find("LOG_FREQUENCY", 10))  # type: ignore[call-overload]
        if iteration % frequency:
            return
        write = self.tb_writer.add_scalar
        if task.last_batch.loss is not None:
            write("Training/Loss", float(task.last_batch.loss.detach()), iteration)
        write("Training/Learning_rate", float(task.optimizer.options_view.lr), iteration)
        times = task.batch_time[-50:]  # Recent ones, so that the estimate follows a change.
        if times:
            mean = sum(times) / len(times)
            per_second = task.get_batchsize_per_replica() / mean
            left = max(0, task.max_iteration - iteration)
            write("Speed/Batch_processing_time_ms", int(1000 * mean), iteration)
            write("Speed/img_per_sec_per_gpu", int(per_second), iteration)
            write("Speed/ETA_hours", mean * left / 3600, iteration)

    def on_phase_end(self, task: Task) -> None:
        if not task.run.world.is_main:
            return
        title = "Training" if task.train else "Testing"
        # In VISSL the tag ends with the index of the output, here with that of the metric.
        for index, meter in enumerate(task.meters):
            for name, value in meter.value.items():
                tag = f"{title}/{meter.name}_{name}_Output_{index}"
                self.tb_writer.add_scalar(tag, value, task.train_phase_idx)
        if task.train and self.log_params:
            self._plot_parameters(task, task.train_phase_idx)
        self.tb_writer.flush()

    def _plot_parameters(self, task: Task, step: int) -> None:
        for name, parameter in task.model.named_parameters():
            self.tb_writer.add_histogram(f"Parameters/{name}", parameter.detach(), step)
            if self.log_params_gradients and parameter.grad is not None:
                self.tb_writer.add_histogram(f"Gradients/{name}", parameter.grad, step)
