"""Lightning on several ranks: `LightningModule`, `Trainer` and its strategy for DDP."""

from __future__ import annotations

import logging
import warnings

import lightning
import torch
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from lightning.pytorch.plugins.environments import TorchElasticEnvironment
from torch import Tensor, nn

from bench.many.job import BATCH, LOG_EVERY, VALIDATED, Job, samples

ALWAYS_SHUFFLES = True
"""On several ranks its own sampler shuffles the training data, whatever the loader says."""


class Module(lightning.LightningModule):
    """The model with its steps."""

    def __init__(self, job: Job) -> None:
        super().__init__()
        self.model = job.model
        self.loss = nn.MSELoss()
        self.job = job
        self.counted = 0

    def training_step(self, batch: list[Tensor], batch_index: int) -> Tensor:
        """Compute the loss."""
        inputs, targets = batch
        loss: Tensor = self.loss(self.model(inputs), targets)
        # Reduced over the ranks where it is logged: sync_dist=True would do so in every iteration.
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch: list[Tensor], batch_index: int) -> None:
        """Count the samples."""
        self.counted += len(batch[0])

    def on_fit_start(self) -> None:
        """Give each rank random numbers of its own."""
        self.job.seed()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return the optimizer."""
        return self.job.optimizer()


def _trainer(job: Job) -> lightning.Trainer:
    warnings.filterwarnings("ignore", module="lightning")
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.ERROR)
    callbacks: list[Callback] = []
    if job.save_at:
        save = ModelCheckpoint(job.folder, "saved", every_n_train_steps=job.save_at, save_top_k=-1)
        callbacks.append(save)
    return lightning.Trainer(
        max_epochs=job.epochs,
        accelerator="cpu",
        strategy="ddp",
        devices=job.size,
        plugins=[TorchElasticEnvironment()],
        logger=CSVLogger(job.folder, flush_logs_every_n_steps=LOG_EVERY),
        log_every_n_steps=LOG_EVERY,
        enable_checkpointing=bool(job.save_at),
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=callbacks,
    )


def train(job: Job) -> None:
    """Train, with the loss in a file."""
    loader = job.loader(job.data, batch_size=job.own_batch, shuffle=job.shuffles)
    path = str(job.folder / "saved.ckpt") if job.resumes else None
    _trainer(job).fit(Module(job), loader, ckpt_path=path, weights_only=False)


def count_validated(job: Job) -> int:
    """Validate; return how many samples the mean is made of."""
    module = Module(job)
    loader = job.loader(samples(VALIDATED, job.widths[0]), batch_size=BATCH // job.size)
    _trainer(job).validate(module, loader, verbose=False)
    total = torch.tensor(module.counted)
    torch.distributed.all_reduce(total)
    return int(total)


def has_saved(job: Job) -> bool:
    """Return whether the checkpoint is complete; it is written before the training continues."""
    return (job.folder / "saved.ckpt").exists()
