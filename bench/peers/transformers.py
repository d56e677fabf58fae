"""Hugging Face's `Trainer` on the common work."""

from __future__ import annotations

import json
from time import perf_counter

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import SequentialSampler, default_collate
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments
from transformers.utils import logging

from bench.tiny import BATCH, EMA_SHARE, LOG_EVERY, LR, Work


class Model(nn.Module):
    """Returns its loss."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner
        self.loss = nn.MSELoss()

    def forward(self, inputs: Tensor, targets: Tensor) -> dict[str, Tensor]:
        """Compute loss and output."""
        output = self.inner(inputs)
        return {"loss": self.loss(output, targets), "output": output}


class InOrder(Trainer):
    """Takes the samples in their order."""

    def _get_train_sampler(self, *args: object) -> object:
        return SequentialSampler(self.train_dataset)


class Idle(TrainerCallback):
    """Acts after an epoch only."""

    def on_epoch_end(self, *args: object, **kwargs: object) -> None:
        """Do nothing."""


class Empty(TrainerCallback):
    """Is called after each iteration, and does nothing."""

    def on_step_end(self, *args: object, **kwargs: object) -> None:
        """Do nothing."""


class Watch(TrainerCallback):
    """Writes logged values to a file, and times iterations."""

    def __init__(self, work: Work) -> None:
        self.file = (work.folder / "log.jsonl").open("w")
        self.since, self.spent = perf_counter(), 0.0

    def on_step_end(self, *args: object, **kwargs: object) -> None:
        """Add the time of the iteration."""
        now = perf_counter()
        self.spent, self.since = self.spent + now - self.since, now

    def on_log(
        self, args: object, state: object, control: object, logs: object = None, **kwargs: object
    ) -> None:
        """Write a line."""
        line = {"logs": logs, "iter_time": self.spent / LOG_EVERY}
        self.file.write(json.dumps(line) + "\n")
        self.file.flush()
        self.spent = 0.0


class Average(TrainerCallback):
    """Averages the weights, which the library itself cannot do."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        update = get_ema_multi_avg_fn(1 - EMA_SHARE)  # type: ignore[no-untyped-call]
        self.average = AveragedModel(model, multi_avg_fn=update)

    def on_step_end(self, *args: object, **kwargs: object) -> None:
        """Update the average."""
        self.average.update_parameters(self.model)


def collate(samples: list[object]) -> dict[str, Tensor]:
    """Make a batch as torch does, and name its parts."""
    inputs, targets = default_collate(samples)
    return {"inputs": inputs, "targets": targets}


def train(work: Work) -> None:
    """Train as the case says."""
    logging.set_verbosity_error()
    case, model, optimizer = work.case, Model(work.model), work.optimizer()
    arguments = TrainingArguments(
        output_dir=str(work.folder),
        per_device_train_batch_size=BATCH,
        num_train_epochs=1,
        learning_rate=LR,
        lr_scheduler_type="constant",
        max_grad_norm=0.0,
        logging_strategy="steps" if case.everyday else "no",
        logging_steps=LOG_EVERY,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        disable_tqdm=True,
        dataloader_pin_memory=False,
    )
    callbacks: list[TrainerCallback] = [Idle() for _ in range(case.idle)]
    callbacks += [Empty() for _ in range(case.empty)]
    if case.everyday:
        callbacks.append(Watch(work))
    if case.ema:
        callbacks.append(Average(model))
    # Its constructor seeds torch, which would change the random numbers of the other trainings.
    state = torch.random.get_rng_state()
    trainer = InOrder(
        model=model,
        args=arguments,
        data_collator=collate,
        train_dataset=work.data,
        optimizers=(optimizer, work.schedule(optimizer) if case.everyday else None),
        callbacks=callbacks,
    )
    torch.random.set_rng_state(state)
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    if case.everyday:
        trainer.save_model()
        trainer.save_state()
