"""The configurations that are recorded: one function for each, with public names only.

Each is small, and made so that a draw that moves, a number that is added in another order, or a
state that is lost shows in its bits.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from tests.golden import parts
from tests.golden.attempt import Attempt
from tests.golden.parts import adam, batches, loader, mse, network, sgd
from tests.golden.setting import Configuration
from torch import nn
from torch.utils.data import DataLoader

from hookloop import Hook
from hookloop.hooks import SaveCheckpoint

CONFIGURATIONS: list[Configuration] = []


def configuration(number: int | str, what: str, **options: object) -> Callable:
    def add(train: Callable[[Attempt], None]) -> Callable[[Attempt], None]:
        CONFIGURATIONS.append(Configuration(number, what, train, **options))
        return train

    return add


class At(Hook):
    """Does something at a mount point."""

    takes_part_in_training = True
    draws_random_numbers = True

    def __init__(self, point: str, act: Callable) -> None:
        setattr(self, point, act)


# --- data -----------------------------------------------------------------------------------------


@configuration(1, "a list of batches, without hooks", is_fast=True)
def plain(attempt):
    model = network()
    trainer = attempt.trainer(
        model,
        train_data=batches(),
        loss=mse,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.05),
        max_epochs=2,
        seed=3,
        defaults=False,
        save=None,
    )
    attempt.train(trainer)


@configuration(2, "tensors in memory, shuffled, default hooks", kills=(7,), is_fast=True)
def in_memory(attempt):
    model = network()
    optimizer = adam(model)
    trainer = attempt.trainer(
        model,
        train_data=loader(22, shuffle=True),
        val_data=loader(8, seed=2),
        loss=mse,
        optimizer=optimizer,
        schedule=torch.optim.lr_scheduler.StepLR(optimizer, 3),
        max_epochs=3,
        seed=3,
        save=SaveCheckpoint(),
    )
    attempt.train(trainer)


@configuration(3, "a data set that draws, validation shuffled", kills=(3, 9), is_fast=True)
def drawing(attempt):
    model, order = network(), torch.Generator().manual_seed(5)
    trainer = attempt.trainer(
        model,
        train_data=DataLoader(parts.Noisy(), batch_size=4, shuffle=True),
        val_data=DataLoader(parts.Noisy(9, 2), batch_size=4, shuffle=True, generator=order),
        loss=mse,
        optimizer=sgd(model),
        max_epochs=3,
        seed=3,
        generators=[order],
    )
    attempt.train(trainer)


@configuration(4, "2 workers, then none: the same numbers", kills=(5,), is_fast=True)
def workers(attempt):
    for number in (2, 0):
        model = network()
        data = DataLoader(parts.Noisy(), batch_size=4, shuffle=True, num_workers=number)
        trainer = attempt.trainer(
            model,
            train_data=data,
            loss=mse,
            optimizer=sgd(model),
            max_epochs=2,
            seed=3,
            seed_samples=True,
        )
        attempt.train(trainer)
        if attempt.part != "whole":
            break
        attempt.end(trainer, f"with {number}")
        attempt.run_dir.rename(attempt.directory / f"with_{number}")


@configuration(5, "2 persistent workers with numbers of torch's", kills=(4, 8))
def persistent_workers(attempt):
    model = network()
    options = {"batch_size": 4, "num_workers": 2, "persistent_workers": True}
    trainer = attempt.trainer(
        model,
        train_data=DataLoader(parts.Noisy(), shuffle=True, **options),
        val_data=DataLoader(parts.Noisy(9, 2), **options),
        loss=mse,
        optimizer=sgd(model),
        max_epochs=3,
        seed=3,
        seed_samples="workers",
    )
    attempt.train(trainer)


@configuration(6, "a sampler that draws as it goes and follows the losses", kills=(6,))
def reacting_sampler(attempt):
    model, sampler = network(), parts.Reacting(20)

    def follow(run):
        sampler.weights[run.progress.iter % 20] += run.loss.detach()

    class Follow(Hook):
        takes_part_in_training = True

        def after_train_iter(self, run):
            follow(run)

        def state_dict(self):
            return {"weights": sampler.weights}

        def load_state_dict(self, state):
            sampler.weights = state["weights"]

    trainer = attempt.trainer(
        model,
        train_data=DataLoader(parts.Noisy(), batch_size=4, sampler=sampler),
        loss=mse,
        optimizer=sgd(model),
        hooks=[Follow()],
        max_epochs=3,
        seed=3,
    )
    attempt.train(trainer)


@configuration(
    7, "own batch sampler; another batch size and accumulation at the resume", kills=(5,)
)
def own_batch_sampler(attempt):
    model = network()
    size, accumulate = (2, 2) if attempt.is_resumed else (4, 1)
    options = {}
    if attempt.is_resumed:
        from hookloop import Resume

        options["resume"] = Resume("auto", change=["accumulate"])
    trainer = attempt.trainer(
        model,
        train_data=DataLoader(parts.Noisy(24), batch_sampler=parts.DrawnBatches(24, size)),
        loss=mse,
        optimizer=sgd(model),
        max_epochs=3,
        accumulate=accumulate,
        seed=3,
        **options,
    )
    attempt.train(trainer)


@configuration(8, "an iterable of unknown length, and a hook that reads it, too", kills=(4,))
def unknown_length(attempt):
    model = network()

    class Look(Hook):
        every = "3 iters"

        def after_train_iter(self, run):
            sums = [float(batch[0].sum()) for batch in run.train_data]
            run.metrics.put("look/sum", sum(sums))

    trainer = attempt.trainer(
        model,
        train_data=DataLoader(parts.Endless(20), batch_size=4),
        loss=mse,
        optimizer=sgd(model),
        hooks=[Look()],
        max_iters=13,
        seed=3,
    )
    attempt.train(trainer)


@configuration(9, "a loader with a state, one with a generator of its own; limits", kills=(3,))
def own_loaders(attempt):
    order = torch.Generator().manual_seed(9)
    both = {
        "stateful": parts.Stateful(),
        "own order": loader(24, shuffle=True, generator=order),
    }
    for name, data in both.items():
        model = network()
        trainer = attempt.trainer(
            model,
            train_data=data,
            val_data=loader(12, seed=2),
            loss=mse,
            optimizer=sgd(model),
            limit={"train": 4, "val": 2},
            max_epochs=3,
            seed=3,
            generators=[order],
            run_dir="run" if name == "own order" else "stateful",
        )
        if attempt.part == "whole" or name == "own order":
            attempt.train(trainer)
            attempt.end(trainer, name)


# --- updates --------------------------------------------------------------------------------------


@configuration(10, "groups of 4, the last one smaller, weights from the step", is_fast=True)
def weighted_groups(attempt):
    model = network()

    def step(run, batch):
        inputs, targets = batch
        weight = torch.tensor(0.0) if inputs[0, 0] > 1 else (inputs[:, 1] > 0).sum()
        loss = mse(run.model(inputs), targets)
        return {"loss": loss, "weight": weight, "size": inputs.abs().mean()}

    trainer = attempt.trainer(
        model,
        train_data=loader(42, shuffle=True),
        step=step,
        optimizer=sgd(model),
        accumulate=4,
        max_epochs=3,
        seed=3,
    )
    attempt.train(trainer)


@configuration(11, "accumulation that changes, clipping", kills=(5,), is_fast=True)
def growing_groups(attempt):
    model = network()
    trainer = attempt.trainer(
        model,
        train_data=loader(22, shuffle=True),
        loss=mse,
        optimizer=adam(model),
        accumulate={0: 1, "1 epoch": 3},
        clip_norm=0.5,
        max_epochs=3,
        seed=3,
    )
    attempt.train(trainer)


class Limited(nn.Module):
    """Has room for so many samples from a number of calls on."""

    def __init__(self, inner, rooms):
        super().__init__()
        self.inner, self.rooms = inner, rooms
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))
        self.iteration = 0

    def forward(self, inputs):
        self.calls += 1
        room = next(room for start, room in reversed(self.rooms) if self.iteration >= start)
        output = self.inner(inputs)
        if self.training and len(inputs) > room:
            raise torch.OutOfMemoryError("no room")
        return output


@configuration(12, "batches split when memory runs out", kills=(5,), is_fast=True)
def out_of_memory(attempt):
    model = Limited(network(norm=True), [(0, 100), (3, 4), (8, 2)])

    def count(run):
        model.iteration = run.progress.iter

    trainer = attempt.trainer(
        model,
        train_data=loader(48, 8, shuffle=True),
        loss=mse,
        optimizer=sgd(model),
        hooks=[At("before_train_iter", count)],
        accumulate="auto",
        max_epochs=2,
        seed=3,
    )
    attempt.train(trainer)
