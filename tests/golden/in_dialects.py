"""Two configurations of a foreign system, whose classes reach into the engine."""

from __future__ import annotations

import time

import torch
from tests.golden import parts
from tests.golden.configurations import configuration
from tests.golden.digests import flatten, generators
from torch import nn

from hookloop import dialects


def train(attempt, sampler):  # noqa: C901 - classes that need what it imports
    """Train with a Runner, wherever it comes from, and write down where the generators stand."""
    from mmengine.hooks import Hook
    from mmengine.model import BaseModel
    from mmengine.runner import Runner

    class Net(BaseModel):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.layers = nn.Sequential(
                nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 1)
            )

        def forward(self, inputs, targets, mode="tensor"):
            output = self.layers(torch.stack(list(inputs)))
            if mode == "loss":
                return {"loss": parts.mse(output, torch.stack(list(targets)))}
            return list(output)

    by_epoch = sampler == "DefaultSampler"
    last = "epoch_1.pth" if by_epoch else "iter_6.pth"
    trace = attempt.record.setdefault("trace", [])

    class Watch(Hook):
        priority = "LOWEST"

        def watch(self, stage, runner):
            trace.append([stage, "", "", runner.iter, runner.epoch, generators()])

    def watching(stage):
        return lambda self, runner, *_, **__: self.watch(stage, runner)

    for stage in Hook.stages:
        if "save_checkpoint" not in stage:  # Which the engine makes elsewhere.
            setattr(Watch, stage, watching(stage))

    class Kill(Hook):
        def before_train_iter(self, runner, *_, **__):
            if attempt.kill == runner.iter:
                attempt.wait_for_last(last)
                attempt.die()

    class Pairs(parts.Noisy):
        def __getitem__(self, index):
            return dict(zip(("inputs", "targets"), super().__getitem__(index), strict=True))

    torch.manual_seed(1)
    runner = Runner(
        model=Net(),
        work_dir=str(attempt.run_dir),
        train_dataloader={
            "dataset": Pairs(22),
            "sampler": {"type": sampler, "shuffle": True},
            "batch_size": 4,
        },
        train_cfg={"by_epoch": True, "max_epochs": 3}
        if by_epoch
        else {"by_epoch": False, "max_iters": 14, "val_interval": 100},
        optim_wrapper={
            "optimizer": {"type": "SGD", "lr": 0.05, "momentum": 0.9},
            "accumulative_counts": 2,
        },
        param_scheduler={"type": "StepLR", "step_size": 1},
        custom_hooks=[Watch(), Kill()],
        default_hooks={
            "logger": {"type": "LoggerHook", "interval": 2},
            "checkpoint": {"type": "CheckpointHook", "interval": 1}
            if by_epoch
            else {"type": "CheckpointHook", "interval": 3, "by_epoch": False},
        },
        randomness={"seed": 5},
        log_level="WARNING",
        experiment_name="golden",
        resume=attempt.is_resumed,
    )
    runner.train()
    state = {
        "model": runner.model.state_dict(),
        "optimizer": runner.optim_wrapper.optimizer.state_dict(),
        "generators": generators(),
        "iter": runner.iter,
        "epoch": runner.epoch,
    }
    attempt.record["end"] = flatten(state, "end")


@configuration(
    31, "the Runner of another system on our engine, accumulation of 2", kills=(7,), counts=False
)
def alias(attempt):
    with dialects.alias("mmengine"):
        train(attempt, "DefaultSampler")


@configuration(
    32,
    "our engine under the real Runner of another system",
    kills=(7,),
    counts=False,
    needs="mmengine",
)
def graft(attempt):
    time.sleep = lambda seconds: None  # It sleeps two seconds between passes.
    with dialects.graft("mmengine"):
        train(attempt, "InfiniteSampler")
