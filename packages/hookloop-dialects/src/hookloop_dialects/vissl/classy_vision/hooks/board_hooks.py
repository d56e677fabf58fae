"""ClassyVision's hooks for TensorBoard and Visdom."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor

from hookloop.dialects import require
from hookloop_dialects.vissl.classy_vision.generic.classy_checkpoints import flatten_dict
from hookloop_dialects.vissl.classy_vision.hooks.classy_hook import QuietHook

if TYPE_CHECKING:
    from hookloop_dialects.vissl.task import Task


def make_writer(config: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a SummaryWriter
    """Make the writer that a config describes under ``summary_writer``."""
    require("tensorboard", extra="tensorboard", who="TensorboardPlotHook")
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(**config.get("summary_writer", {}))


class ModelTensorboardHook(QuietHook):
    """Draw the model's graph with the first batch.

    Args:
        tb_writer: A SummaryWriter.
    """

    def __init__(self, tb_writer: Any) -> None:  # noqa: ANN401 - a SummaryWriter
        super().__init__()
        self.tb_writer = tb_writer
        self._is_drawn = False

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Make the hook and its writer."""
        return cls(tb_writer=make_writer(config))

    # ClassyVision draws in on_start. The first batch is the example input here, so it waits.
    def on_step(self, task: Task) -> None:
        sample = task.last_batch.sample
        if self._is_drawn or not task.run.world.is_main or not isinstance(sample, Mapping):
            return
        self._is_drawn = True
        # On a copy, and with the random state restored: drawing must not change the training.
        model = copy.deepcopy(task.model).eval()
        with torch.random.fork_rng(), torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Tracing warns about every branch in a model.
            self.tb_writer.add_graph(model, sample["input"])
        self.tb_writer.flush()


class TensorboardPlotHook(QuietHook):
    """Plot learning rate, loss, meters, speed and parameters.

    Args:
        tb_writer: A SummaryWriter.
        log_period: Batches between two points of a curve.
    """

    def __init__(self, tb_writer: Any, log_period: int = 10) -> None:  # noqa: ANN401 - as above
        super().__init__()
        if log_period < 1:
            raise ValueError(f"log_period must be at least 1, not {log_period}.")
        self.tb_writer = tb_writer
        self.log_period = log_period
        self.state.step_count = {"train": 0, "test": 0}  # type: ignore[attr-defined]
        self._rates: list[tuple[int, float]] = []
        self._began = 0.0

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Make the hook and its writer."""
        return cls(make_writer(config), config.get("log_period", 10))

    def on_phase_start(self, task: Task) -> None:
        self._rates = []
        self._began = perf_counter()
        if task.run.world.is_main and task.phase_idx == 0:
            self._plot_parameters(task, -1)  # Before the training, as in ClassyVision.

    def on_step(self, task: Task) -> None:
        counts = self.state.step_count  # type: ignore[attr-defined]
        if task.train and counts["train"] % self.log_period == 0:
            self._rates.append((counts["train"], float(task.optimizer.options_view.lr)))
        counts[task.phase_type] += 1

    def on_phase_end(self, task: Task) -> None:
        if not task.run.world.is_main:
            return
        phase, write = task.phase_type, self.tb_writer.add_scalar
        index = task.train_phase_idx if task.train else task.eval_phase_idx
        # Kept until now, because ClassyVision writes only at the end of a phase.
        for step, rate in self._rates:
            write(f"Learning Rate/{phase}", rate, global_step=step)
        losses = task.losses
        samples = max(1, len(losses) * task.get_batchsize_per_replica())
        write(f"Losses/{phase}", sum(losses) / max(1, len(losses)), global_step=index)
        for meter in task.meters:
            for name, value in flatten_dict(meter.value).items():
                write(f"Meters/{phase}/{meter.name}/{name}", value, global_step=index)
        seconds = perf_counter() - self._began
        write(f"Speed/{phase}/images_per_second", samples / seconds, global_step=index)
        if task.train:
            self._plot_parameters(task, index)
        self.tb_writer.flush()

    def _plot_parameters(self, task: Task, index: int) -> None:
        for name, parameter in task.model.named_parameters():
            self.tb_writer.add_histogram(f"Parameters/{name}", parameter.detach(), index)


class VisdomHook(QuietHook):
    """Draw the curves of loss and meters on a Visdom server, after each test phase.

    Args:
        server: Address of the server.
        port: Port of the server.
        env: The environment there.
        title_suffix: Suffix of the titles.
    """

    def __init__(self, server: str, port: str, env: str = "main", title_suffix: str = "") -> None:
        super().__init__()
        visdom = require("visdom", extra="all", who="VisdomHook")
        self.server = visdom.Visdom(server=server, port=port)
        self.env = env
        self.title_suffix = title_suffix
        self._curves: dict[str, list[float]] = {}

    def on_phase_end(self, task: Task) -> None:
        losses = task.losses
        self._add(f"{task.phase_type}_loss", sum(losses) / max(1, len(losses)))
        for meter in task.meters:
            for name, value in flatten_dict(meter.value).items():
                self._add(f"{task.phase_type}_{meter.name}_{name}", value)
        if not task.train and task.run.world.is_main:
            for name, values in self._curves.items():
                title = f"{name}{self.title_suffix}"
                points = Tensor(range(len(values)))
                options = {"title": title}
                self.server.line(Tensor(values), points, env=self.env, win=title, opts=options)

    def _add(self, name: str, value: float) -> None:
        self._curves.setdefault(name, []).append(value)
