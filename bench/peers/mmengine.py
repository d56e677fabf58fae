"""MMEngine on the common work: `Runner` and its hooks."""

from __future__ import annotations

from uuid import uuid4

import torch
from mmengine.hooks import Hook
from mmengine.model import BaseModel
from mmengine.optim import OptimWrapper
from mmengine.runner import Runner
from torch import Tensor, nn

from bench.tiny import DECAY_EVERY, EMA_SHARE, LOG_EVERY, Perceptron, Work

NONE = dict.fromkeys(
    ("runtime_info", "timer", "sampler_seed", "logger", "param_scheduler", "checkpoint")
)


class Model(BaseModel):
    """The model with its loss."""

    def __init__(self, inner: Perceptron) -> None:
        super().__init__()
        self.inner = inner
        self.loss = nn.MSELoss()

    def forward(self, inputs: Tensor, targets: Tensor, mode: str = "tensor") -> object:
        """Return the loss, under its name, or the output."""
        output = self.inner(inputs)
        return {"loss": self.loss(output, targets)} if mode == "loss" else output


class Idle(Hook):
    """Acts after an epoch only."""

    def after_train_epoch(self, runner: object) -> None:
        """Do nothing."""


class Empty(Hook):
    """Is called after each iteration, and does nothing."""

    def after_train_iter(self, *args: object, **kwargs: object) -> None:
        """Do nothing."""


def train(work: Work) -> None:
    """Train as the case says."""
    case = work.case
    default_hooks: dict[str, object] = dict(NONE)
    if case.everyday:
        default_hooks |= {
            "runtime_info": {"type": "RuntimeInfoHook"},
            "timer": {"type": "IterTimerHook"},
            "logger": {"type": "LoggerHook", "interval": LOG_EVERY},
            "param_scheduler": {"type": "ParamSchedulerHook"},
            "checkpoint": {"type": "CheckpointHook", "interval": 1},
        }
    custom: list[object] = [Idle() for _ in range(case.idle)]
    custom += [Empty() for _ in range(case.empty)]
    if case.ema:
        custom.append({"type": "EMAHook", "momentum": EMA_SHARE})
    step = {"type": "StepLR", "step_size": DECAY_EVERY, "gamma": 0.9, "by_epoch": False}
    threads = torch.get_num_threads()
    runner = Runner(
        model=Model(work.model),
        work_dir=str(work.folder),
        train_dataloader=work.loader(),
        train_cfg={"by_epoch": True, "max_epochs": 1},
        optim_wrapper=OptimWrapper(work.optimizer()),
        param_scheduler=step if case.everyday else None,
        default_hooks=default_hooks,
        custom_hooks=custom,
        log_level="ERROR",
        experiment_name=f"tiny_{uuid4().hex}",
    )
    torch.set_num_threads(threads)
    runner.train()
