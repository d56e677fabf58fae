"""hookloop on several ranks."""

from __future__ import annotations

from torch import Tensor, nn

from bench.many.job import BATCH, LOG_EVERY, VALIDATED, Job, samples
from hookloop import Hook, Trainer
from hookloop.hooks import SaveCheckpoint, WriteMetrics


def train(job: Job) -> None:
    """Train, with the loss of all ranks in a file."""
    hooks: list[Hook] = [WriteMetrics(every=LOG_EVERY)]
    if job.save_at:
        hooks.append(SaveCheckpoint(every=job.save_at))
    Trainer(
        job.model,
        train_data=job.loader(job.data, batch_size=BATCH, shuffle=job.shuffles),
        loss=nn.MSELoss(),
        optimizer=job.optimizer(),
        max_epochs=job.epochs,
        device="cpu",
        default_hooks=False,
        hooks=hooks,
        run_dir=job.folder / "run",
        resume=job.resumes,
    ).train()


def count_validated(job: Job) -> int:
    """Validate; return how many samples the mean is made of."""

    def count(output: Tensor, targets: Tensor) -> Tensor:
        counted.append(len(targets))
        return (output - targets).square().mean()

    counted: list[int] = []
    trainer = Trainer(
        job.model,
        val_data=job.loader(samples(VALIDATED, job.widths[0]), batch_size=BATCH),
        loss=nn.MSELoss(),
        metrics={"error": count},
        device="cpu",
        default_hooks=False,
    )
    trainer.on("after_run")(lambda run: counted.append(sum(run.gather(sum(counted)))))
    trainer.validate()
    return counted[-1]


def has_saved(job: Job) -> bool:
    """Return whether the checkpoint, which is written in the background, is complete."""
    index = job.folder / "run" / "checkpoints.json"
    return index.exists() and f"iter_{job.save_at}" in index.read_text()
