"""Trainings with callbacks in the style of public ones, for the real Transformers and for ours.

A scenario's callbacks are built on whichever `TrainerCallback` is given; what they see is recorded.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

EVENTS = (
    "on_train_begin", "on_train_end", "on_epoch_begin", "on_epoch_end", "on_step_begin",
    "on_pre_optimizer_step", "on_optimizer_step", "on_substep_end", "on_step_end", "on_evaluate",
    "on_predict", "on_log", "on_prediction_step",
)  # fmt: skip
KEYWORDS = {
    "model", "processing_class", "optimizer", "lr_scheduler", "train_dataloader", "eval_dataloader",
}  # fmt: skip
UNLIKE = ("runtime", "per_second", "grad_norm")
"""Parts of names: times differ, and ours has a norm only if it clips."""


@dataclass
class Scenario:
    """A training and its callbacks.

    Attributes:
        callbacks: Returns the callbacks; given the package's names, and a list for what they see.
        args: Arguments of Transformers, which our config may have as well.
        epochs: Epochs to train.
        steps: Updates to make, if they decide.
        accumulate: Batches of an update.
        val_every: Updates between validations; by default it validates after epochs.
    """

    callbacks: Callable[[Any, list[Any]], list[Any]]
    args: dict[str, Any] = field(default_factory=dict)
    epochs: int = 2
    steps: int | None = None
    accumulate: int = 1
    val_every: int | None = None


class Samples(Dataset):
    def __init__(self, count):
        inputs = torch.randn(count, 4, generator=torch.Generator().manual_seed(1))
        self.samples = [{"x": one, "labels": one.sum(0, keepdim=True)} for one in inputs]

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        return self.samples[index]


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = torch.nn.Linear(4, 8), torch.nn.Linear(8, 1)

    def forward(self, x=None, labels=None):
        output = self.last(torch.tanh(self.first(x)))
        return {"loss": torch.nn.functional.mse_loss(output, labels), "logits": output}


def rate(optimizer):
    return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))


def numbers(model):
    return [round(float(value), 6) for p in model.parameters() for value in p.detach().flatten()]


def rounded(values):
    return {
        name: round(float(value), 5)
        for name, value in values.items()
        if not any(part in name for part in UNLIKE)
    }


def recorder(names, seen, events=EVENTS, then=lambda event, state, control: None):
    def method(event):
        def call(self, args, state, control, **kwargs):
            assert set(kwargs) >= KEYWORDS
            extra = {k: rounded(v) for k, v in kwargs.items() if k not in KEYWORDS}
            names = ("training_stop", "epoch_stop", "save", "evaluate", "log")
            switches = [getattr(control, f"should_{name}") for name in names]
            where = [round(float(state.epoch), 4), state.global_step, state.max_steps]
            rate = round(kwargs["lr_scheduler"].get_last_lr()[0], 6)
            counts = [state.num_train_epochs, len(state.log_history), rate]
            seen.append([event, *where, *counts, switches, extra])
            return then(event, state, control)

        return call

    return type("Record", (names.TrainerCallback,), {name: method(name) for name in events})()


def record_all(names, seen):
    return [recorder(names, seen)]


def steer(names, seen):
    def then(event, state, control):
        if event == "on_step_end":
            control.should_log = control.should_log or state.global_step == 1
            control.should_evaluate = control.should_evaluate or state.global_step == 2
            control.should_training_stop = state.global_step == 5
            return control
        return None

    return [recorder(names, seen, then=then)]


def another_control(names, seen):
    """A control that is returned takes the place of the one before."""

    class Another(names.TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            return names.TrainerControl(should_training_stop=state.global_step == 4)

    return [Another(), recorder(names, seen, ("on_step_end", "on_train_end"))]


def loss_history(names, seen):
    class History(names.TrainerCallback):
        def on_log(self, args, state, control, logs=None, **kwargs):
            if state.is_world_process_zero and "loss" in logs:
                seen.append([state.global_step, round(logs["loss"], 5)])

        def on_train_end(self, args, state, control, **kwargs):
            seen.append([one["step"] for one in state.log_history])

    return [History()]


def stop_at_loss(names, seen):
    class Enough(names.TrainerCallback):
        def on_evaluate(self, args, state, control, metrics=None, **kwargs):
            seen.append(round(metrics["eval_loss"], 5))
            if metrics["eval_loss"] < 4.0:
                control.should_training_stop = True

    return [Enough()]


def warm_up(names, seen):
    class WarmUp(names.TrainerCallback):
        def on_step_begin(self, args, state, control, optimizer=None, **kwargs):
            for group in optimizer.param_groups:
                group["lr"] = 0.1 * min(1.0, (state.global_step + 1) / 4)

    return [WarmUp()]


def average_weights(names, seen):
    class Average(names.TrainerCallback):
        def on_train_begin(self, args, state, control, model=None, **kwargs):
            self.average = copy.deepcopy(model)

        def on_step_end(self, args, state, control, model=None, **kwargs):
            for mean, one in zip(self.average.parameters(), model.parameters(), strict=True):
                mean.data.lerp_(one.data, 0.5)

        def on_train_end(self, args, state, control, **kwargs):
            seen.append(numbers(self.average))

    return [Average()]


def scale_gradients(names, seen):
    class Scale(names.TrainerCallback):
        def on_pre_optimizer_step(self, args, state, control, model=None, **kwargs):
            for parameter in model.parameters():
                parameter.grad.mul_(0.5)

        def on_optimizer_step(self, args, state, control, model=None, **kwargs):
            seen.append(round(float(model.last.bias.grad.sum()), 5))

    return [Scale()]


def freeze_by_epoch(names, seen):
    class Freeze(names.TrainerCallback):
        def on_epoch_begin(self, args, state, control, model=None, **kwargs):
            model.first.requires_grad_(state.epoch >= 1)
            seen.append([float(state.epoch), model.first.weight.requires_grad])

    return [Freeze()]


def early_stopping(names, seen):
    class Note(names.EarlyStoppingCallback):
        def on_train_end(self, args, state, control, **kwargs):
            best = round(float(state.best_metric), 5)
            seen.append([self.early_stopping_patience_counter, best])

    return [Note(early_stopping_patience=2, early_stopping_threshold=0.3)]


def evaluate_often(names, seen):
    class Often(names.TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            if state.global_step in (1, 4):
                control.should_evaluate = True
            return control

    return [Often(), recorder(names, seen, ("on_evaluate", "on_epoch_end"))]


def describe_run(names, seen):
    class Describe(names.TrainerCallback):
        def on_train_begin(self, args, state, control, **kwargs):
            seen.append([
                float(args.num_train_epochs), args.max_steps,
                args.gradient_accumulation_steps, args.per_device_train_batch_size,
                args.logging_steps, str(getattr(args.eval_strategy, "value", args.eval_strategy)),
                args.load_best_model_at_end, args.metric_for_best_model, args.seed,
                args.world_size, args.process_index, str(args.device), state.is_world_process_zero,
                state.is_local_process_zero, state.num_train_epochs, state.logging_steps,
                state.best_metric, float(state.total_flos), hasattr(args, "no_such_argument"),
            ])  # fmt: skip

    return [Describe()]


LOGS = {"logging_steps": 2}
SCENARIOS = {
    "calls": Scenario(record_all, LOGS),
    "calls_with_accumulation": Scenario(record_all, LOGS, accumulate=2),
    "calls_when_steered": Scenario(steer, LOGS),
    "calls_by_steps": Scenario(record_all, LOGS, val_every=2, steps=6),
    "calls_with_a_limit_of_steps": Scenario(record_all, LOGS, steps=4),
    "calls_with_logs_of_epochs": Scenario(record_all, {"logging_strategy": "epoch"}),
    "another_control": Scenario(another_control),
    "loss_history": Scenario(loss_history, {"logging_steps": 2, "logging_first_step": True}),
    "stop_at_loss": Scenario(stop_at_loss, epochs=6),
    "warm_up": Scenario(warm_up),
    "average_weights": Scenario(average_weights),
    "scale_gradients": Scenario(scale_gradients),
    "freeze_by_epoch": Scenario(freeze_by_epoch),
    "early_stopping": Scenario(early_stopping, {"metric_for_best_model": "eval_loss",
                                                "greater_is_better": False}, epochs=9),
    "evaluate_often": Scenario(evaluate_often),
    "describe_run": Scenario(describe_run, {"logging_steps": 7}, accumulate=2),
}  # fmt: skip


def train_ours(scenario, names, run_dir):
    """Make the training of a scenario in our Trainer, with the callbacks of a package."""
    from hookloop import Trainer
    from hookloop.hooks import StepSchedules

    seen: list[Any] = []
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    trainer = Trainer(
        model,
        train_data=DataLoader(Samples(12), batch_size=4),
        val_data=DataLoader(Samples(8), batch_size=4),
        optimizer=optimizer,
        schedule=rate(optimizer),
        max_epochs=None if scenario.steps else scenario.epochs,
        max_iters=scenario.steps,
        accumulate=scenario.accumulate,
        val_every=scenario.val_every or "1 epoch",
        hooks=[*scenario.callbacks(names, seen), StepSchedules()],
        default_hooks=False,
        run_dir=run_dir,
        setup={"config": scenario.args},
    )
    trainer.train()
    return {"seen": seen, "weights": numbers(model), "steps": trainer.run.progress.iter}
