"""Lightning on the common work: `LightningModule`, `Trainer` and its callbacks."""

from __future__ import annotations

import logging
import warnings

import lightning
from lightning.pytorch.callbacks import Callback, EMAWeightAveraging, ModelCheckpoint, Timer
from lightning.pytorch.loggers import CSVLogger
from torch import Tensor, nn

from bench.tiny import EMA_SHARE, LOG_EVERY, Work


class Module(lightning.LightningModule):
    """The model with its step."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        self.model = work.model
        self.loss = nn.MSELoss()
        self.work = work
        self.everyday = work.case.everyday

    def training_step(self, batch: list[Tensor], batch_index: int) -> Tensor:
        """Compute the loss."""
        inputs, targets = batch
        loss: Tensor = self.loss(self.model(inputs), targets)
        if self.everyday:
            self.log("train_loss", loss)
        return loss

    def configure_optimizers(self) -> object:
        """Return the optimizer, and the schedule of the everyday set."""
        optimizer = self.work.optimizer()
        if not self.everyday:
            return optimizer
        schedule = {"scheduler": self.work.schedule(optimizer), "interval": "step"}
        return {"optimizer": optimizer, "lr_scheduler": schedule}

    def on_train_epoch_end(self) -> None:
        """Keep the trained weights, because the average replaces them at the end."""
        self.work.keep_weights()


class Idle(Callback):
    """Acts after an epoch only."""

    def on_train_epoch_end(self, trainer: object, module: object) -> None:
        """Do nothing."""


class Empty(Callback):
    """Is called after each iteration, and does nothing."""

    def on_train_batch_end(self, *args: object) -> None:
        """Do nothing."""


def train(work: Work) -> None:
    """Train as the case says."""
    warnings.filterwarnings("ignore", module="lightning")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    case = work.case
    callbacks: list[Callback] = [Idle() for _ in range(case.idle)]
    callbacks += [Empty() for _ in range(case.empty)]
    if case.everyday:
        callbacks += [Timer(), ModelCheckpoint(work.folder, save_last=True)]
    if case.ema:
        callbacks.append(EMAWeightAveraging(decay=1 - EMA_SHARE))
    trainer = lightning.Trainer(
        max_epochs=1,
        accelerator="cpu",
        logger=CSVLogger(work.folder, flush_logs_every_n_steps=LOG_EVERY)
        if case.everyday
        else False,
        log_every_n_steps=LOG_EVERY,
        enable_checkpointing=case.everyday,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=callbacks,
    )
    trainer.fit(Module(work), work.loader())
