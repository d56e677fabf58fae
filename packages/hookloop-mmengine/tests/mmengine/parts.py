"""A model, data and a metric in MMEngine's form, small enough to train in every test."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from hookloop_mmengine.evaluator import BaseMetric
from hookloop_mmengine.hooks import Hook
from hookloop_mmengine.model import BaseModel


class Numbers(Dataset):
    def __init__(self, scale=1.0):
        self.values = torch.arange(4.0)[:, None] * scale

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        return {"inputs": self.values[index]}


class Net(BaseModel):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(1, 1)

    def forward(self, inputs, mode="tensor"):
        output = self.linear(torch.stack(list(inputs)))
        return {"loss": output.pow(2).mean()} if mode == "loss" else list(output)


class Count(BaseMetric):
    default_prefix = "count"

    def process(self, data_batch, data_samples):
        self.results += data_samples

    def compute_metrics(self, results):
        return {"samples": float(len(results))}


class Scripted(BaseMetric):
    """Returns one dict of metrics per evaluation; the last one is repeated."""

    def __init__(self, *rows):
        super().__init__()
        self.rows, self.count = rows, 0

    def process(self, data_batch, data_samples):
        self.results += data_samples

    def compute_metrics(self, results):
        self.count += 1
        return self.rows[min(self.count, len(self.rows)) - 1]


class Seen(Hook):
    """Writes down the data, learning rates and weights of a training."""

    priority = "LOWEST"

    def __init__(self):
        self.inputs, self.rates, self.weights, self.counters = [], [], [], []

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        self.inputs.append(sum(float(value) for value in data_batch["inputs"]))

    def after_train_epoch(self, runner):
        self.rates.append(runner.optim_wrapper.param_groups[0]["lr"])

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        self.weights.append(float(runner.model.linear.weight.detach()))

    def before_test(self, runner):
        self.counters.append((runner.epoch, runner.iter))


def collate(samples):
    return {"inputs": [sample["inputs"] for sample in samples]}


def make_loader(scale=1.0, **options):
    return DataLoader(Numbers(scale), **({"batch_size": 2, "collate_fn": collate} | options))
