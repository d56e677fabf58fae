"""A small training with the real MMEngine, which tests make with and without the graft."""

import itertools
import os
import signal
import sys
from pathlib import Path

import numpy as np
import torch
from mmengine.evaluator import BaseMetric
from mmengine.hooks import Hook
from mmengine.model import BaseModel
from mmengine.runner import Runner
from torch import nn

numbers = itertools.count()


class Points(torch.utils.data.Dataset):
    """Points with a label, and noise that is drawn when they are read."""

    def __init__(self, size=22):
        self.size = size
        self.metainfo = {"classes": ("left", "right")}

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        noise = torch.randn(4) + float(np.random.rand())
        return {"inputs": noise + index % 2, "data_samples": torch.tensor(index % 2)}


class Net(BaseModel):
    """A model that draws random numbers and has buffers."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 2)
        )

    def forward(self, inputs, data_samples=None, mode="tensor"):
        output = self.layers(torch.stack(list(inputs)))
        labels = torch.stack(list(data_samples))
        if mode == "loss":
            return {"loss": nn.functional.cross_entropy(output, labels)}
        pairs = zip(output.argmax(1), labels, strict=True)
        return [{"is_right": float(guess == label)} for guess, label in pairs]


class Accuracy(BaseMetric):
    default_prefix = "points"

    def process(self, data_batch, data_samples):
        self.results += [sample["is_right"] for sample in data_samples]

    def compute_metrics(self, results):
        return {"accuracy": float(np.mean(results))}


class Record(Hook):
    """Write down every call with MMEngine's counters, and the loss."""

    def __init__(self, kill_at=None):
        self.seen = []
        self.kill_at = kill_at
        self.count = 0

    def _note(self, runner, name, *values):
        self.seen.append((name, runner.epoch, runner.iter, *values))

    def before_run(self, runner):
        self._note(runner, "before_run")

    def before_train(self, runner):
        self._note(runner, "before_train")

    def before_train_epoch(self, runner):
        self._note(runner, "before_train_epoch")

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        self._note(runner, "before_train_iter", batch_idx, runner.model.training)

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        self.count += 1
        self._note(runner, "after_train_iter", batch_idx, float(outputs["loss"].detach()))
        if "TRACE" in os.environ:
            loss = float(outputs["loss"].detach())
            print("loss", runner.iter, repr(loss), self.count, flush=True)  # noqa: T201
        if self.kill_at == runner.iter and "SIGNAL" in os.environ:
            os.kill(os.getpid(), signal.SIGTERM)
        elif self.kill_at == runner.iter:
            os._exit(9)

    def after_train_epoch(self, runner):
        self._note(runner, "after_train_epoch")

    def after_val_epoch(self, runner, metrics=None):
        self._note(runner, "after_val_epoch", dict(metrics))

    def before_save_checkpoint(self, runner, checkpoint):
        self._note(runner, "before_save_checkpoint", sorted(checkpoint))

    def after_load_checkpoint(self, runner, checkpoint):
        self._note(runner, "after_load_checkpoint")

    def after_train(self, runner):
        self._note(runner, "after_train")

    def after_run(self, runner):
        self._note(runner, "after_run")


def loader(*, shuffle, sampler="DefaultSampler", workers=0, **options):
    return {
        "dataset": Points(),
        "sampler": {"type": sampler, "shuffle": shuffle},
        "batch_size": 4,
        "num_workers": workers,
        "persistent_workers": workers > 0,
        **options,
    }


def make_runner(work_dir, *hooks, by_epoch=True, length=3, checkpoint=None, train=None, **options):
    """Make a runner of the real MMEngine; with `hooks` as its custom hooks."""
    torch.manual_seed(1)
    train_cfg = {"by_epoch": True, "max_epochs": length, "val_interval": 1}
    if not by_epoch:
        train_cfg = {"by_epoch": False, "max_iters": length, "val_interval": 5}
    saving = {"type": "CheckpointHook", "interval": 1 if by_epoch else 5, "by_epoch": by_epoch}
    defaults = {
        "model": Net(),
        "train_dataloader": loader(shuffle=True, **(train or {})),
        "train_cfg": train_cfg,
        "val_dataloader": loader(shuffle=False),
        "val_evaluator": [Accuracy()],
        "val_cfg": {},
        "optim_wrapper": {"optimizer": {"type": "SGD", "lr": 0.1, "momentum": 0.9}},
        "param_scheduler": {"type": "ExponentialLR", "gamma": 0.9, "by_epoch": by_epoch},
        "default_hooks": {"checkpoint": {**saving, **(checkpoint or {})}},
        "custom_hooks": list(hooks),
        "randomness": {"seed": 3},
        "log_level": "ERROR",
        "experiment_name": f"toy_{os.getpid()}_{next(numbers)}",
    }
    return Runner(work_dir=str(work_dir), **{**defaults, **options})


def weights_of(runner):
    return {name: value.clone() for name, value in runner.model.state_dict().items()}


def files_in(directory):
    """Return the names of a run's files, without those that the time names."""
    names = (str(path.relative_to(directory)) for path in Path(directory).rglob("*.pth"))
    return sorted(names)


if __name__ == "__main__":  # A training that is killed, or continues: see test_training.py.
    from hookloop import dialects

    dialects.graft("mmengine")
    work_dir, kill_at, by_epoch, workers, sampler = sys.argv[1:6]
    hook = Record(kill_at=int(kill_at) if kill_at else None)
    trained = make_runner(
        work_dir,
        hook,
        {"type": "EMAHook"},
        by_epoch=bool(by_epoch),
        length=3 if by_epoch else 16,
        checkpoint={"save_best": "points/accuracy", "rule": "greater", "max_keep_ckpts": 2},
        train={"workers": int(workers), "sampler": sampler},
        resume=True,
    )
    trained.train()
    for name, value in trained.model.state_dict().items():
        print("weight", name, repr(value.double().sum().item()))  # noqa: T201
