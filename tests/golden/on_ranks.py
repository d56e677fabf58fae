"""The configurations of several ranks: three, because with two a sum has only one order."""

from __future__ import annotations

import torch
from tests.golden import parts
from tests.golden.configurations import EverySecond, configuration, loss_of_each
from tests.golden.parts import adam, loader, mse, network, sgd
from torch import nn
from torch.utils.data import DataLoader


def own_rank() -> int:
    return torch.distributed.get_rank() if torch.distributed.is_initialized() else 0


@configuration(
    28,
    "3 ranks, uneven batches, groups of 2, batch norm; then on 2 and on 1",
    kills=(4,),
    ranks=3,
    resumed_on=(3, 2, 1),
)
def replicated(attempt):
    model = network(norm=True)
    trainer = attempt.trainer(
        model,
        train_data=DataLoader(parts.Noisy(55), batch_size=8, shuffle=True),
        val_data=loader(20, 6, seed=2),
        loss=mse,
        optimizer=adam(model),
        accumulate=2,
        clip_norm=0.5,
        max_epochs=2,
        seed=3,
        save=2,
    )
    attempt.train(trainer)


@configuration(29, "3 ranks, two streams, one rank without samples", "streams", kills=(3,), ranks=3)
def uneven_streams(attempt):
    model = network()
    trainer = attempt.trainer(
        model,
        train_data={
            "a": loader(41, 8, shuffle=True),
            "b": DataLoader(parts.Noisy(26, seed=3), batch_size=5, shuffle=True),
        },
        data={"mix": "zip"},
        step=loss_of_each,
        optimizer=sgd(model, 0.01),
        max_epochs=2,
        seed=3,
        save=3,
    )
    attempt.train(trainer)


@configuration(
    29, "3 ranks, weights, a step that skips on one rank", "weights", kills=(3,), ranks=3
)
def weighted_on_ranks(attempt):
    model = network()

    def step(run, batch):
        inputs, targets = batch
        if run.progress.iter % 3 == 1 and own_rank() == 1:
            return None
        weight = (inputs[:, 1] > 0).sum()
        return {
            "loss": mse(run.model(inputs), targets),
            "weight": weight,
            "size": inputs.abs().mean(),
        }

    trainer = attempt.trainer(
        model,
        train_data=loader(41, 8, shuffle=True),
        step=step,
        optimizer=sgd(model, 0.01),
        accumulate=2,
        max_epochs=3,
        seed=3,
        save=3,
    )
    attempt.train(trainer)


@configuration(29, "3 ranks, own update that keeps gradients", "update", kills=(3,), ranks=3)
def own_update_on_ranks(attempt):
    model = network()
    optimizer = sgd(model)
    update = EverySecond(
        "",
        lambda run: run.model(run.batch[0]),
        lambda run: mse(run.output, run.batch[1]),
        [optimizer],
    )
    trainer = attempt.trainer(
        model,
        train_data=loader(41, 8, shuffle=True),
        step=update,
        optimizer=optimizer,
        max_epochs=2,
        seed=3,
        save=3,
    )
    attempt.train(trainer)


@configuration(30, "2 ranks, sharded, clipping", "sharded", kills=(4,), ranks=2)
def sharded(attempt):
    torch.manual_seed(0)
    layers = nn.ModuleList([nn.Linear(4, 8), nn.Linear(8, 8), nn.Linear(8, 1)])

    class Layers(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers, self.drop = layers, nn.Dropout(0.2)

        def forward(self, inputs):
            for layer in self.layers:
                inputs = self.drop(torch.tanh(layer(inputs)))
            return inputs

    model = Layers()
    trainer = attempt.trainer(
        model,
        train_data=loader(38, 8, shuffle=True),
        val_data=loader(10, seed=2),
        loss=mse,
        optimizer=adam(model),
        clip_norm=0.5,
        max_epochs=2,
        seed=3,
        parallel="sharded",
        save=2,
    )
    attempt.train(trainer)


class Narrow(nn.Module):
    """Has room for two samples on the second rank, after some iterations."""

    def __init__(self):
        super().__init__()
        self.inner = network()
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))
        self.seen = 0

    def forward(self, inputs):
        self.calls += 1
        self.seen += 1
        if self.training and own_rank() == 1 and self.seen > 3 and len(inputs) > 2:
            raise torch.OutOfMemoryError("no room")
        return self.inner(inputs)


@configuration(30, "2 ranks, batches split when one runs out of memory", "memory", ranks=2)
def out_of_memory_on_ranks(attempt):
    model = Narrow()
    trainer = attempt.trainer(
        model,
        train_data=loader(38, 8, shuffle=True),
        loss=mse,
        optimizer=sgd(model),
        accumulate="auto",
        max_epochs=2,
        seed=3,
        save=3,
    )
    attempt.train(trainer)
