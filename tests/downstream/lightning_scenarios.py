"""Trainings with callbacks in the style of public ones, for the real Lightning and for ours.

A scenario's callbacks are built on whichever `Callback` is given; what they see is recorded.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import DataLoader, TensorDataset

BATCHES = (
    "on_train_batch_start", "on_train_batch_end", "on_validation_batch_start",
    "on_validation_batch_end", "on_test_batch_start", "on_test_batch_end",
    "on_predict_batch_start", "on_predict_batch_end",
)  # fmt: skip
HOOKS = (
    "setup", "teardown", "on_fit_start", "on_fit_end", "on_sanity_check_start",
    "on_sanity_check_end", "on_train_start", "on_train_end", "on_train_epoch_start",
    "on_train_epoch_end", "on_exception", "on_before_backward", "on_after_backward",
    "on_before_optimizer_step", "on_before_zero_grad", "on_validation_start", "on_validation_end",
    "on_validation_epoch_start", "on_validation_epoch_end", "on_test_start", "on_test_end",
    "on_test_epoch_start", "on_test_epoch_end", "on_predict_start", "on_predict_end",
    "on_predict_epoch_start", "on_predict_epoch_end", *BATCHES,
)  # fmt: skip


@dataclass
class Scenario:
    """A training and its callbacks.

    Attributes:
        callbacks: Returns the callbacks; given the package's names, and a list for what they see.
        epochs: Epochs to train.
        accumulate: Batches of an update.
        tests: Whether to test and to predict afterwards.
        streams: Validation streams.
        schedule: Whether a schedule steps every iteration.
        failing: The step in which the model fails.
        samples: Samples of the training data, four per batch.
    """

    callbacks: Callable[[Any, list[Any]], list[Any]]
    epochs: int = 2
    accumulate: int = 1
    tests: bool = False
    streams: int = 1
    schedule: bool = False
    failing: int = -1
    samples: int = 12


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))


def data(samples=12, shift=0.0):
    inputs = torch.randn(samples, 4, generator=torch.Generator().manual_seed(1)) + shift
    return DataLoader(TensorDataset(inputs, inputs.sum(1, keepdim=True)), batch_size=4)


def validation(scenario):
    return [data(8, shift=index) for index in range(scenario.streams)]


def loss_of(model, batch):
    return torch.nn.functional.mse_loss(model(batch[0]), batch[1])


def rate(optimizer):
    return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))


def numbers(model):
    return [round(float(value), 6) for p in model.parameters() for value in p.detach().flatten()]


def plain(value):
    """Return an argument in a form that JSON has."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, torch.Tensor):
        return round(float(value.detach().float().sum()), 5)
    if isinstance(value, BaseException | torch.optim.Optimizer):
        return type(value).__name__
    return str(getattr(value, "value", value)) if isinstance(value, str) else value


def metric(trainer, name):
    found = trainer.callback_metrics.get(name)
    return None if found is None else round(float(found), 5)


def recorder(names, seen, hooks=HOOKS):
    def method(hook):
        def call(self, trainer, pl_module, *args, **kwargs):
            where = [trainer.current_epoch, trainer.global_step, pl_module.training]
            stage = [str(trainer.state.fn.value), str(trainer.state.stage.value)]
            seen.append([hook, *where, *stage, plain(args), plain(kwargs)])

        return call

    return type("Record", (names.Callback,), {hook: method(hook) for hook in hooks})()


def record_all(names, seen):
    return [recorder(names, seen)]


def record_failing(names, seen):
    # Ours drops old gradients before the forward pass, Lightning after it.
    return [recorder(names, seen, [hook for hook in HOOKS if hook != "on_before_zero_grad"])]


def stop_within_an_epoch(names, seen):
    class StopAtStep(names.Callback):
        def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
            if trainer.global_step == 4:
                trainer.should_stop = True

    return [recorder(names, seen), StopAtStep()]


def warm_up(names, seen):
    """The rate is set by the step, as warm-up callbacks do; schedules step before it."""

    class WarmUp(names.Callback):
        def __init__(self, steps=4, target=0.1):
            self.steps, self.target = steps, target

        def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
            if trainer.global_step <= self.steps:
                for group in trainer.optimizers[0].param_groups:
                    group["lr"] = self.target * trainer.global_step / self.steps
            seen.append(trainer.optimizers[0].param_groups[0]["lr"])

    return [WarmUp()]


def watch_rate(names, seen):
    class WatchRate(names.Callback):
        def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
            seen.append(["start", pl_module.optimizers().param_groups[0]["lr"]])

        def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
            scheduler = trainer.lr_scheduler_configs[0].scheduler
            assert pl_module.lr_schedulers() is scheduler
            seen.append(["end", scheduler.get_last_lr()[0]])

    return [WatchRate()]


def average_weights(names, seen):
    """An average of the weights that is validated in their place."""

    class Average(names.Callback):
        def __init__(self, decay=0.5):
            self.decay = decay
            self.average = self.kept = None

        def on_fit_start(self, trainer, pl_module):
            self.average = copy.deepcopy(pl_module.state_dict())

        def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
            for name, value in pl_module.state_dict().items():
                self.average[name].lerp_(value, 1 - self.decay)

        def on_validation_start(self, trainer, pl_module):
            self.kept = copy.deepcopy(pl_module.state_dict())
            pl_module.load_state_dict(self.average)

        def on_validation_end(self, trainer, pl_module):
            pl_module.load_state_dict(self.kept)
            seen.append(metric(trainer, "val_loss"))

    return [Average()]


def log_gradient_norm(names, seen):
    class GradientNorm(names.Callback):
        def on_before_optimizer_step(self, trainer, pl_module, optimizer):
            norms = [p.grad.norm() for p in pl_module.parameters() if p.grad is not None]
            pl_module.log("grad_norm", torch.stack(norms).norm())

        def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
            seen.append([metric(trainer, "grad_norm"), round(float(outputs["loss"]), 5)])

    return [GradientNorm()]


def old_gradients(names, seen):
    """Gradients of the last update are there until they are dropped."""

    class Old(names.Callback):
        def on_before_zero_grad(self, trainer, pl_module, optimizer):
            total = sum(
                float(p.grad.abs().sum()) for p in pl_module.parameters() if p.grad is not None
            )
            seen.append(round(total, 4))

    return [Old()]


def freeze_by_epoch(names, seen):
    class Freeze(names.Callback):
        def on_train_epoch_start(self, trainer, pl_module):
            first = next(iter(pl_module.parameters()))
            first.requires_grad_(trainer.current_epoch > 0)
            seen.append([trainer.current_epoch, pl_module.current_epoch, first.requires_grad])

    return [Freeze()]


def history(names, seen):
    class History(names.Callback):
        def on_validation_epoch_end(self, trainer, pl_module):
            seen.append(["validated", metric(trainer, "val_loss")])

        def on_train_epoch_end(self, trainer, pl_module):
            seen.append([trainer.current_epoch, metric(trainer, "val_loss"),
                         metric(trainer, "train_loss")])  # fmt: skip

    return [History()]


def stop_at_threshold(names, seen):
    class Threshold(names.Callback):
        def on_validation_end(self, trainer, pl_module):
            if not trainer.sanity_checking and trainer.callback_metrics["val_loss"] < 2.6:
                trainer.should_stop = True

    return [Threshold(), recorder(names, seen, ("on_train_epoch_end", "on_train_end"))]


def collect_outputs(names, seen):
    class Collect(names.Callback):
        def on_validation_epoch_start(self, trainer, pl_module):
            self.losses = []

        def on_validation_batch_end(
            self, trainer, pl_module, outputs, batch, batch_idx, dataloader_idx=0
        ):
            self.losses.append([round(float(outputs), 5), batch_idx, dataloader_idx])

        def on_validation_epoch_end(self, trainer, pl_module):
            seen.append(self.losses)

    return [Collect()]


def clamp_weights(names, seen):
    class Clamp(names.Callback):
        def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
            with torch.no_grad():
                for parameter in pl_module.parameters():
                    parameter.clamp_(-0.3, 0.3)

    return [Clamp()]


def scale_gradients(names, seen):
    class Scale(names.Callback):
        def on_after_backward(self, trainer, pl_module):
            for parameter in pl_module.parameters():
                parameter.grad.mul_(0.5)

        def on_before_backward(self, trainer, pl_module, loss):
            seen.append(round(float(loss.detach()), 5))

    return [Scale()]


def change_batches(names, seen):
    class Change(names.Callback):
        def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
            batch[0].mul_(2.0)

    return [Change()]


def log_both(names, seen):
    class Both(names.Callback):
        def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
            pl_module.log_dict({"index": float(batch_idx)}, on_step=True, on_epoch=True)
            pl_module.log("mean_index", float(batch_idx), on_step=False, on_epoch=True)

        def on_validation_batch_end(
            self, trainer, pl_module, outputs, batch, batch_idx, dataloader_idx=0
        ):
            pl_module.log("val_index", float(batch_idx))
            pl_module.log("val_most", float(batch_idx), reduce_fx="max")

        def on_train_end(self, trainer, pl_module):
            names = ("index_step", "index_epoch", "mean_index", "val_index", "val_most")
            seen.append({name: metric(trainer, name) for name in names})

    return [Both()]


def describe_run(names, seen):
    class Describe(names.Callback):
        def on_train_start(self, trainer, pl_module):
            seen.append([
                trainer.max_epochs, trainer.max_steps, trainer.num_training_batches,
                trainer.num_val_batches, trainer.estimated_stepping_batches, trainer.world_size,
                trainer.global_rank, trainer.is_global_zero, trainer.accumulate_grad_batches,
                trainer.check_val_every_n_epoch, trainer.val_check_interval, trainer.training,
                trainer.sanity_checking, trainer.fast_dev_run, len(trainer.callbacks) > 0,
                isinstance(pl_module, torch.nn.Module), str(pl_module.device),
                trainer.strategy.broadcast("x"), trainer.train_dataloader.batch_size,
            ])  # fmt: skip

    return [Describe()]


def functions(names, seen):
    return [
        names.LambdaCallback(
            on_train_start=lambda trainer, pl_module: seen.append("started"),
            on_train_batch_end=lambda trainer, pl_module, outputs, batch, i: seen.append(i),
        )
    ]


def early_stopping(names, seen):
    class Note(names.EarlyStopping):
        def on_train_end(self, trainer, pl_module):
            seen.append([self.wait_count, self.stopped_epoch, trainer.current_epoch])

    return [Note("val_loss", min_delta=0.3, patience=2)]


SCENARIOS = {
    "calls": Scenario(record_all, tests=True),
    "calls_with_accumulation": Scenario(record_all, accumulate=2, samples=16),
    "calls_when_stopped": Scenario(stop_within_an_epoch, epochs=3),
    "calls_when_failing": Scenario(record_failing, failing=4),
    "calls_with_two_streams": Scenario(record_all, streams=2, epochs=1),
    "warm_up": Scenario(warm_up, schedule=True),
    "watch_rate": Scenario(watch_rate, schedule=True),
    "average_weights": Scenario(average_weights, epochs=3),
    "log_gradient_norm": Scenario(log_gradient_norm),
    "old_gradients": Scenario(old_gradients, epochs=1),
    "freeze_by_epoch": Scenario(freeze_by_epoch),
    "history": Scenario(history),
    "stop_at_threshold": Scenario(stop_at_threshold, epochs=6),
    "collect_outputs": Scenario(collect_outputs),
    "collect_outputs_of_streams": Scenario(collect_outputs, streams=2),
    "clamp_weights": Scenario(clamp_weights),
    "scale_gradients": Scenario(scale_gradients),
    "change_batches": Scenario(change_batches, epochs=1),
    "log_both": Scenario(log_both),
    "describe_run": Scenario(describe_run, accumulate=2, samples=16),
    "functions": Scenario(functions),
    "early_stopping": Scenario(early_stopping, epochs=9),
}


def train_ours(scenario, names, run_dir):
    """Make the training of a scenario in our Trainer, with the callbacks of a package."""
    from hookloop import Trainer
    from hookloop.hooks import StepSchedules

    seen: list[Any] = []
    model, error = network(), None
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    def step(run, batch):
        if run.phase == "train" and run.progress.iter == scenario.failing:
            raise ValueError("as planned")
        return loss_of(run.model, batch)

    streams = validation(scenario)
    trainer = Trainer(
        model,
        train_data=data(scenario.samples),
        val_data=streams[0] if len(streams) == 1 else dict(enumerate(streams)),
        data={"test": data(8) if scenario.tests else None},
        step=step,
        optimizer=optimizer,
        schedule=rate(optimizer) if scenario.schedule else None,
        max_epochs=scenario.epochs,
        accumulate=scenario.accumulate,
        hooks=[*scenario.callbacks(names, seen), StepSchedules()],
        default_hooks=False,
        run_dir=run_dir,
    )
    try:
        trainer.train()
    except ValueError as failure:
        error = str(failure)
    if scenario.tests:
        trainer.test()
        trainer.predict(data(8))
    done = trainer.run.progress.iter
    return {"seen": seen, "weights": numbers(model), "steps": done, "error": error}
