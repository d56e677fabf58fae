"""Hooks that make the update, and the same training by hand."""

import torch
from tests.tiny import make_data, make_model
from torch.nn.utils import clip_grad_norm_

from hookloop_dialects.imix import HookBase, PriorityStatus


class StepItself(HookBase):
    """Clears, accumulates, clips and steps, as optimizer hooks of projects do."""

    def __init__(self, max_norm=None):
        self.level = PriorityStatus.HIGH
        self.max_norm = max_norm

    def before_train_iter(self):
        if self.trainer.iter % self.trainer.gradient_accumulation_steps == 0:
            self.trainer.optimizer.zero_grad()

    def after_train_iter(self):
        self.trainer.output["loss"] /= self.trainer.gradient_accumulation_steps
        self.trainer.output["loss"].backward()
        if self.max_norm is not None:
            clip_grad_norm_(self.trainer.model.parameters(), self.max_norm)
        if (self.trainer.iter + 1) % self.trainer.gradient_accumulation_steps == 0:
            self.trainer.optimizer.step()


class ScaleItself(StepItself):
    """The same with a scaler that it makes before the training."""

    def before_train(self):
        self.scaler = torch.amp.GradScaler("cpu", init_scale=64.0, growth_interval=2)

    def after_train_iter(self):
        loss = self.trainer.output["loss"] / self.trainer.gradient_accumulation_steps
        self.scaler.scale(loss).backward()
        if (self.trainer.iter + 1) % self.trainer.gradient_accumulation_steps == 0:
            self.scaler.step(self.trainer.optimizer)
            self.scaler.update()


def by_hand(iters, steps=1, max_norm=None, gamma=1.0):
    """Return the model and the losses of a training without any engine."""
    model, losses = make_model(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma)
    batches = list(make_data())
    for number in range(iters):
        if number % steps == 0:
            optimizer.zero_grad()
        inputs, targets = batches[number % len(batches)]
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        losses.append(loss.item())
        (loss / steps).backward()
        if max_norm is not None:
            clip_grad_norm_(model.parameters(), max_norm)
        if (number + 1) % steps == 0:
            optimizer.step()
            scheduler.step()
    return model, losses


def parts():
    """Return a model and its optimizer, as `by_hand` makes them."""
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    return {"model": model, "optimizer": optimizer}
