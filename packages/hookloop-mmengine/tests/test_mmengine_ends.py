"""A script that counts iterations and loads in workers ends, however its trainings end."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

SCRIPT = """
import sys

import torch
from mmengine.evaluator import BaseMetric
from mmengine.hooks import Hook
from mmengine.model import BaseModel
from mmengine.runner import Runner


class Net(BaseModel):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(1, 1)

    def forward(self, inputs, mode="tensor"):
        output = self.linear(torch.stack(inputs))
        return {"loss": output.pow(2).mean()} if mode == "loss" else list(output)


class Count(BaseMetric):
    def process(self, data_batch, data_samples):
        self.results += data_samples

    def compute_metrics(self, results):
        return {"count": len(results)}


class End(Hook):
    def __init__(self, how):
        self.how = how

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        if batch_idx == 2 and self.how == "stop":
            runner.train_loop.stop_training = True
        elif batch_idx == 2 and self.how == "fail":
            raise RuntimeError("on purpose")


def loader(kind, **options):
    data = [{"inputs": torch.ones(1)}] * 6
    sampler = {"type": kind, "shuffle": True}
    return {"dataset": data, "batch_size": 2, "num_workers": 1, "sampler": sampler, **options}


def make(how, **options):
    evaluation = {"dataset": [{"inputs": torch.ones(1)}] * 2, "batch_size": 1, "num_workers": 1}
    parts = {}
    for phase in ("val", "test"):
        parts[f"{phase}_dataloader"] = evaluation
        parts[f"{phase}_cfg"], parts[f"{phase}_evaluator"] = {}, Count()
    return Runner(
        Net(), f"work_{how}", train_dataloader=loader("InfiniteSampler", **options),
        train_cfg={"by_epoch": False, "max_iters": 5, "val_interval": 2}, log_level="ERROR",
        optim_wrapper={"optimizer": {"type": "SGD", "lr": 0.1}}, custom_hooks=[End(how)], **parts,
    )


runners = []  # They outlive their trainings, as in a notebook.
for how in ("end", "stop", "fail"):
    for options in ({}, {"persistent_workers": True}):
        runner = make(how, **options)
        runners.append(runner)
        try:
            runner.train()
        except RuntimeError as error:
            print("failed", error)
        runner.val()
        runner.test()
        if how == "end":
            runner.train()
print("done")
"""


def test_the_process_ends(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    command = [sys.executable, "-m", "hookloop", "run", "--alias", "mmengine", str(path)]
    # Waits for the workers too: they hold the same pipes.
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=120, cwd=tmp_path, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[-1] == "done"
    assert ended.stdout.count("failed on purpose") == 2
