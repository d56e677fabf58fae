"""The configurations that are recorded: one function for each, with public names only.

Each is small, and made so that a draw that moves, a number that is added in another order, or a
state that is lost shows in its bits.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable

import numpy as np
import torch
from tests.golden import parts
from tests.golden.attempt import Attempt
from tests.golden.parts import adam, batches, loader, mse, network, sgd
from tests.golden.setting import Configuration
from torch import nn
from torch.utils.data import DataLoader

from hookloop import Hook, Resume, Update, find_batch, find_lr
from hookloop.hooks import AverageWeights, RollBack, SaveCheckpoint, SkipBadUpdates, StopOnNaN

CONFIGURATIONS: list[Configuration] = []


def configuration(number: int, what: str, variant: str = "", **options: object) -> Callable:
    def add(train: Callable[[Attempt], None]) -> Callable[[Attempt], None]:
        CONFIGURATIONS.append(Configuration(number, what, train, variant, **options))
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


@configuration(4, "2 workers", kills=(5,), is_fast=True)
@configuration(4, "the same data without workers", "none", kills=(5,))
@configuration(4, "2 workers, none after the resume", "fewer", kills=(3,), counts=False)
def workers(attempt):
    number = 0 if attempt.variant == "none" or (attempt.after and attempt.variant) else 2
    model = network()
    trainer = attempt.trainer(
        model,
        train_data=DataLoader(parts.Noisy(), batch_size=4, shuffle=True, num_workers=number),
        loss=mse,
        optimizer=sgd(model),
        max_epochs=2,
        seed=3,
        data={"seed_samples": True},
    )
    attempt.train(trainer)


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
        data={"seed_samples": "workers"},
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


@configuration(7, "own batch sampler", "sampler", kills=(5,))
def own_batch_sampler(attempt):
    model = network()
    trainer = attempt.trainer(
        model,
        train_data=DataLoader(parts.Noisy(24), batch_sampler=parts.DrawnBatches(24, 4)),
        loss=mse,
        optimizer=sgd(model),
        max_epochs=3,
        seed=3,
    )
    attempt.train(trainer)


@configuration(7, "another batch size and accumulation at the resume", "sizes", kills=(5,))
def other_sizes(attempt):
    model = network()
    size, accumulate = (3, 2) if attempt.is_resumed else (4, 1)
    trainer = attempt.trainer(
        model,
        train_data=DataLoader(parts.Noisy(26), batch_size=size, shuffle=True),
        loss=mse,
        optimizer=sgd(model),
        max_epochs=3,
        accumulate=accumulate,
        seed=3,
        resume=Resume("auto", change=["accumulate"] if attempt.is_resumed else ()),
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


@configuration(9, "a loader with a state", "state", kills=(3,))
@configuration(9, "a loader with a generator of its own, limits", "generator", kills=(3,))
def own_loaders(attempt):
    model, order = network(), torch.Generator().manual_seed(9)
    is_stateful = attempt.variant == "state"
    trainer = attempt.trainer(
        model,
        train_data=parts.Stateful() if is_stateful else loader(shuffle=True, generator=order),
        val_data=loader(12, seed=2),
        loss=mse,
        optimizer=sgd(model),
        data={"limit": {"val": 2} | ({} if is_stateful else {"train": 4})},
        max_epochs=3,
        seed=3,
        generators=[order],
    )
    attempt.train(trainer)


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


class Plant(Hook):
    """Makes the loss of some iterations infinite or NaN, as a bad batch would."""

    takes_part_in_training = True
    draws_random_numbers = False

    def __init__(self, factors: dict) -> None:
        self.factors = factors

    def after_loss(self, run):
        if run.phase == "train":
            run.loss = run.loss * self.factors.get(run.progress.iter, 1.0)


@configuration(13, "half precision with an infinite loss, clipping, two optimizers", kills=(4,))
def half_precision(attempt):
    model = network()
    first, last = model[0].parameters(), model[4].parameters()
    trainer = attempt.trainer(
        model,
        train_data=loader(shuffle=True),
        loss=mse,
        optimizer={"first": torch.optim.SGD(first, lr=0.02), "last": torch.optim.Adam(last)},
        hooks=[Plant({2: float("inf"), 7: float("inf")})],
        precision="fp16",
        clip_norm=0.5,
        max_epochs=2,
        seed=3,
    )
    attempt.train(trainer)


@configuration(14, "bf16, bad updates skipped", "plain", kills=(4,))
@configuration(14, "bf16, bad updates skipped by a fused optimizer", "fused", kills=(4,))
@configuration(14, "bf16, stopped at NaN", "stop")
def bad_updates(attempt):
    model = network(norm=True)
    guard = StopOnNaN(action="stop", every=1) if attempt.variant == "stop" else SkipBadUpdates()
    trainer = attempt.trainer(
        model,
        train_data=loader(shuffle=True),
        loss=mse,
        optimizer=torch.optim.Adam(model.parameters(), fused=attempt.variant == "fused"),
        hooks=[Plant({2: float("nan"), 8: float("inf")}), guard],
        precision="bf16",
        max_epochs=2,
        seed=3,
        defaults={"nan": None},
    )
    attempt.train(trainer)


@configuration(
    15, "two steps, of which one makes no update every second time", kills=(3,), is_fast=True
)
def adversaries(attempt):
    model = nn.ModuleDict({"maker": network(1), "judge": network(2)})

    def judge(run, batch):
        inputs, _ = batch
        made = model["maker"](inputs).detach()
        return (model["judge"](inputs) - 1).square().mean() + model["judge"](
            inputs + made
        ).square().mean()

    def make(run, batch):
        if run.progress.iter % 2:
            return None
        inputs, _ = batch
        made = model["maker"](inputs + 0.1 * torch.randn_like(inputs))
        return {"loss": (model["judge"](inputs + made) - 1).square().mean(), "size": made.std()}

    trainer = attempt.trainer(
        model,
        train_data=loader(shuffle=True),
        step={"judge": judge, "maker": make},
        optimizer={name: adam(one) for name, one in model.items()},
        max_epochs=2,
        seed=3,
    )
    attempt.train(trainer)


class EverySecond(Update):
    """Adds the gradients of two iterations before it steps."""

    def zero_grad(self):
        pass

    def apply(self, run):
        if run.progress.iter % 2:
            super().apply(run)
            super().zero_grad()


@configuration(16, "own update that keeps gradients", kills=(5,), is_fast=True)
def own_update(attempt):
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
        train_data=loader(shuffle=True),
        step=update,
        optimizer=optimizer,
        max_epochs=2,
        seed=3,
    )
    attempt.train(trainer)


@configuration(17, "own loop, gradients that wait, left by break", kills=(5,), is_fast=True)
def own_loop(attempt):
    model = network()
    optimizer = sgd(model)
    trainer = attempt.trainer(
        model,
        train_data=loader(shuffle=True),
        val_data=loader(8, seed=2),
        loss=mse,
        optimizer=optimizer,
        max_epochs=3,
        seed=3,
        is_own_loop=True,
    )

    def train():
        with trainer.loop() as groups:
            for inputs, targets in groups:
                for half in (slice(2), slice(2, None)):
                    loss = mse(model(inputs[half]), targets[half]) / 2
                    loss.backward()
                if trainer.run.progress.iter % 2:
                    optimizer.step()
                    optimizer.zero_grad()
                trainer.record(loss, half=loss.detach() / 2)
                if trainer.run.progress.iter == 15:
                    break

    attempt.within(trainer, train)


class Thirds(Update):
    """Makes a step from the gradients of three iterations."""

    def zero_grad(self):
        """Do nothing: they are dropped after a step."""

    def backward(self, loss):
        (loss / 3).backward()

    def apply(self, run):
        if run.progress.iter % 3 == 2:
            super().apply(run)
            super().zero_grad()


class ThreeTogether(Hook):
    """Brings the update above."""

    takes_part_in_training = True

    def change_update(self, run, update):
        return Thirds.like(update)


@configuration(18, "an update that a hook brings", kills=(4,), is_fast=True)
def update_by_hook(attempt):
    model = network()
    trainer = attempt.trainer(
        model,
        train_data=loader(shuffle=True),
        loss=mse,
        optimizer=sgd(model),
        hooks=[ThreeTogether()],
        max_epochs=2,
        seed=3,
    )
    attempt.train(trainer)


class WithLoss(nn.Module):
    """Returns a mapping with its loss and other numbers."""

    def __init__(self):
        super().__init__()
        self.inner = network()

    def forward(self, inputs, targets):
        output = self.inner(inputs)
        return {"loss": mse(output, targets), "size": output.abs().mean(), "output": output}


@configuration(19, "a model that returns its loss in a mapping", "mapping", is_fast=True)
@configuration(19, "a loss that is a sum", "sum", is_fast=True)
def losses(attempt):
    is_sum = attempt.variant == "sum"
    model = network() if is_sum else WithLoss()
    trainer = attempt.trainer(
        model,
        train_data=loader(38, shuffle=True),
        val_data=loader(10, seed=2),
        loss=nn.MSELoss(reduction="sum") if is_sum else None,
        optimizer=sgd(model, 0.01),
        accumulate=3,
        max_epochs=2,
        seed=3,
    )
    attempt.train(trainer)


# --- several streams ------------------------------------------------------------------------------


def two_streams():
    return {
        "a": loader(22, shuffle=True),
        "b": DataLoader(parts.Noisy(15, seed=3), batch_size=3, shuffle=True),
    }


def loss_of_each(run, batch):
    losses = {name: mse(run.model(inputs), targets) for name, (inputs, targets) in batch.items()}
    return {"loss": losses}


@configuration(20, "two streams side by side, a loss for each", kills=(3,), is_fast=True)
def zipped(attempt):
    model = network()
    trainer = attempt.trainer(
        model,
        train_data=two_streams(),
        data={"mix": "zip"},
        step=loss_of_each,
        optimizer=sgd(model, 0.01),
        max_epochs=3,
        seed=3,
    )
    attempt.train(trainer)


@configuration(21, "streams that start again", "cycle", kills=(4, 9))
@configuration(21, "streams drawn by weights that change", "weights", kills=(4, 9))
def mixed(attempt):
    model = network()
    is_cycle = attempt.variant == "cycle"
    trainer = attempt.trainer(
        model,
        train_data=two_streams(),
        data={
            "mix": "cycle" if is_cycle else {"a": 3, "b": {0: 1, "1 epoch": 3}},
            "epoch_iters": 5,
        },
        **({"step": loss_of_each} if is_cycle else {"loss": mse}),
        optimizer=sgd(model, 0.01),
        max_epochs=3,
        seed=3,
    )
    attempt.train(trainer)


class ReplaceOne(Hook):
    """Replaces a stream in the middle of an epoch, and again at the start of a resume."""

    takes_part_in_training = True

    def __init__(self):
        self.is_done = False

    def replace(self, run, **options):
        self.is_done = True
        run.train_data.replace({"b": loader(18, 2, seed=9, shuffle=True)}, **options)

    def after_train_iter(self, run):
        if run.progress.iter == 4:
            self.replace(run, now=True)

    def before_train(self, run):
        if run.progress.iter > 4:
            self.replace(run, now=True)


@configuration(22, "one stream after the other, one replaced", kills=(6,))
def in_order(attempt):
    model = network()
    trainer = attempt.trainer(
        model,
        train_data=two_streams(),
        data={"mix": "in order"},
        loss=mse,
        optimizer=sgd(model, 0.01),
        hooks=[ReplaceOne()],
        max_epochs=2,
        seed=3,
    )
    attempt.train(trainer)


# --- validation, hooks, ends ----------------------------------------------------------------------


@configuration(
    23, "validation by stream, averaged weights, the best, an end in between", kills=(7,)
)
def validated(attempt):
    model = network(norm=True)
    trainer = attempt.trainer(
        model,
        train_data=loader(shuffle=True),
        val_data={"near": loader(8, seed=2), "far": loader(10, seed=3, shuffle=True)},
        loss=mse,
        metrics={"error": lambda output, targets: (output - targets).abs().mean()},
        optimizer=sgd(model),
        hooks=[AverageWeights(momentum=0.1)],
        save=SaveCheckpoint(every=2, keep=2, keep_every=8, best="val/near/error"),
        val_every={"every": {"near": 4, "far": "1 epoch"}, "at_start": True},
        max_iters=15,
        seed=3,
    )
    attempt.train(trainer)


class DieAt(Hook):
    """Ends the process at a mount point."""

    draws_random_numbers = False
    ranks = "all"

    def __init__(self, attempt: Attempt, point: str, is_time: Callable) -> None:
        def die(run, *_):
            if is_time(run):
                attempt.die()

        setattr(self, point, die)


class Rewinds(Hook):
    """Counts how often the run went back."""

    draws_random_numbers = False
    count = 0

    def after_rewind(self, run, rewind):
        self.count += 1


@configuration(
    24,
    "the run goes back twice",
    kills=("the first return", "the second return"),
    counts=False,  # Its first checkpoint is announced at a moment of its own. is_fast=True
)
def rolled_back(attempt):
    model = network(drop=0.1)
    data = batches(96)  # 24 of them.
    data[11][1] += 100
    data[18][1] += 100
    rewinds = Rewinds()
    hooks = [RollBack(window=5, factor=30, skip=2), rewinds]
    if attempt.kill is not None:
        number = {"the first return": 1, "the second return": 2}[attempt.kill]
        hooks.append(DieAt(attempt, "before_train_iter", lambda run: rewinds.count == number))
    trainer = attempt.trainer(
        model,
        train_data=data,
        loss=mse,
        optimizer=sgd(model, 0.01),
        hooks=hooks,
        save=SaveCheckpoint(every=3, keep=None),
        max_epochs=1,
        seed=3,
    )
    attempt.train(trainer)


@configuration(
    25,
    "cut within an iteration, by a signal in a validation, between epochs",
    kills=("an iteration", "a validation", "epochs"),
    is_chained=True,
    ends_in_order=("a validation",),
    is_fast=True,
)
def cut_three_times(attempt):
    model = network()
    hooks = []
    if attempt.kill == "an iteration":
        hooks.append(DieAt(attempt, "after_forward", lambda run: run.progress.iter == 3))
    elif attempt.kill == "a validation":
        hooks.append(At("before_val_iter", lambda run: os.kill(os.getpid(), signal.SIGTERM)))
    elif attempt.kill == "epochs":
        hooks.append(DieAt(attempt, "before_epoch", lambda run: run.progress.epoch == 2))
    trainer = attempt.trainer(
        model,
        train_data=DataLoader(parts.Noisy(), batch_size=4, shuffle=True),
        val_data=DataLoader(parts.Noisy(9, 2), batch_size=3, shuffle=True),
        loss=mse,
        optimizer=sgd(model),
        hooks=hooks,
        max_epochs=3,
        seed=3,
    )
    attempt.train(trainer)


class Draw(Hook):
    """Draws from the three generators, and only looks."""

    def __init__(self, *points: str, every: int | None = None) -> None:
        self.every = every
        for point in points:
            setattr(self, point, self.draw)

    def draw(self, run):
        numbers = random.random() + np.random.rand() + float(torch.rand(()))
        run.metrics.put(f"drawn/{self.name}", numbers)


@configuration(26, "hooks that draw and only look", kills=(5,), is_fast=True)
def observers(attempt):
    model = network()
    trainer = attempt.trainer(
        model,
        train_data=loader(shuffle=True),
        val_data=loader(8, seed=2),
        loss=mse,
        optimizer=sgd(model),
        hooks=[
            Draw("before_train").named("at_start"),
            Draw("before_epoch", "after_epoch").named("by_epoch"),
            Draw("after_train_iter", "before_val_iter").named("always"),
            Draw("after_train_iter", every=3).named("sometimes"),
        ],
        max_epochs=2,
        seed=3,
    )
    attempt.train(trainer)


@configuration(27, "searches, a training, a test of the best, a longer training, a prediction")
def searches(attempt):
    model = network()
    trainer = attempt.trainer(
        model,
        train_data=DataLoader(parts.Noisy(), batch_size=4, shuffle=True),
        val_data=loader(8, seed=2),
        data={"test": loader(8, seed=3)},
        loss=mse,
        optimizer=sgd(model),
        save=SaveCheckpoint(best="val/loss"),
        max_epochs=2,
        seed=3,
    )
    if not attempt.is_counted:
        found = find_batch(trainer, most=16)
        attempt.note("batch", (found.largest, [trial.size for trial in found.trials]))
        search = find_lr(trainer, iters=8)
        attempt.note("rate", (search.suggestion, list(search.rates), list(search.losses)))
        attempt.end(trainer, "after the searches")
    attempt.train(trainer)
    if not attempt.is_counted:
        attempt.note("test", trainer.test(checkpoint="best"))
        attempt.train(trainer, max_epochs=3)
        inputs = loader(10, seed=4).dataset.tensors[0]
        trainer.predict([inputs[:6], inputs[6:]], to=attempt.run_dir / "predictions.csv")
        attempt.end(trainer, "at last")
