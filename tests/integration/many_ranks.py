"""A small training that runs on any number of ranks, for the tests of many ranks."""

import os
import signal

import torch
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, TensorDataset

from hookloop import Hook, Trainer
from hookloop.hooks import SaveCheckpoint


class Net(torch.nn.Module):
    """Has what differs from rank to rank: batch norm and dropout."""

    def __init__(self, dropout=0.2):
        super().__init__()
        self.inner = torch.nn.Linear(4, 16)
        self.norm = torch.nn.BatchNorm1d(16)
        self.dropout = torch.nn.Dropout(dropout)
        self.layers = torch.nn.ModuleList([torch.nn.Linear(16, 16), torch.nn.Linear(16, 1)])

    def forward(self, inputs):
        hidden = self.dropout(torch.tanh(self.norm(self.inner(inputs))))
        for layer in self.layers:
            hidden = layer(hidden)
        return hidden


class Plain(torch.nn.Sequential):
    """Draws nothing and has no buffers, so that any number of ranks computes the same."""

    def __init__(self):
        super().__init__(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))


class RecordSamples(Hook):
    """Remembers which samples this rank trained on, by iteration."""

    def __init__(self):
        self.seen = {}

    def before_train_iter(self, run):
        self.seen[run.progress.iter] = run.batch[0][:, 0].mul(1000).round().int().tolist()


class KillAt(Hook):
    """Sends a signal to some ranks, at a mount point of an iteration."""

    def __init__(self, point, at, ranks, number=signal.SIGKILL):
        def kill(run, *_):
            if run.progress.iter == at and run.world.rank in ranks:
                os.kill(os.getpid(), number)

        setattr(self, point, kill)


def data(samples, seed=1):
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(samples, 4, generator=generator)
    inputs[:, 0] = torch.arange(samples) / 1000  # Names the sample.
    return TensorDataset(inputs, inputs.sum(1, keepdim=True))


def make(
    run_dir, *, hooks=(), samples=103, batch_size=8, model=Net, save_every=5, names=True, **changes
):
    torch.manual_seed(0)
    net = model()
    samples_seen = RecordSamples()
    arguments = {
        "train_data": DataLoader(data(samples), batch_size=batch_size, shuffle=True),
        "val_data": DataLoader(data(51, seed=2), batch_size=10),
        "loss": mse_loss,
        "optimizer": torch.optim.AdamW(net.parameters(), lr=1e-2),
        "max_epochs": 2,
        "seed": 5,
        "device": "cpu",
        "run_dir": run_dir,
        "resume": "auto",
        "default_hooks": {
            "checkpoint": SaveCheckpoint(every=save_every, keep=None),
            "console": None,
        },
        "hooks": [*[samples_seen] * names, *hooks],
    }
    return Trainer(net, **{**arguments, **changes}), samples_seen


def train(run_dir, **changes):
    """Train, and return what a test compares."""
    trainer, samples_seen = make(run_dir, **changes)
    outcome = trainer.train()
    state = trainer.run.model.state_dict()
    whole = {
        name: one.full_tensor() if hasattr(one, "full_tensor") else one
        for name, one in state.items()
    }
    return {
        "status": outcome.status,
        "weights": {name: one.clone() for name, one in whole.items()},
        "seen": samples_seen.seen,
        "metrics": {n: v for n, v in outcome.metrics.items() if "loss" in n},
        "iter": trainer.run.progress.iter,
    }


def global_batches(results):
    """Return the samples of each iteration, those of all ranks in order."""
    return {
        number: [sample for result in results for sample in result["seen"][number]]
        for number in results[0]["seen"]
    }


def is_equal(one, other):
    return all(torch.equal(one["weights"][name], other["weights"][name]) for name in one["weights"])


def distance(one, other):
    return max(
        (one["weights"][name].double() - other["weights"][name].double()).abs().max().item()
        for name in one["weights"]
    )
