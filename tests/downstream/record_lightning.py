"""Record what the real Lightning does, for the tests of our dialect.

    python -m tests.downstream.record_lightning     in the environment of `make downstream`

It imports nothing of hookloop; what it writes is committed, so that the tests need no Lightning.
"""

from __future__ import annotations

import json
import logging
import types
import warnings
from pathlib import Path

import lightning.pytorch as pl
import torch
from lightning.pytorch import callbacks
from tests.downstream.lightning_scenarios import (
    SCENARIOS,
    data,
    loss_of,
    network,
    numbers,
    rate,
    validation,
)

RECORD = Path(__file__).parent / "recorded" / "lightning.json"
NAMES = types.SimpleNamespace(
    Callback=pl.Callback,
    EarlyStopping=callbacks.EarlyStopping,
    LambdaCallback=callbacks.LambdaCallback,
)


class Module(pl.LightningModule):
    """The training of a scenario, as Lightning wants it."""

    def __init__(self, scenario):
        super().__init__()
        self.network, self.scenario = network(), scenario

    def forward(self, inputs):
        return self.network(inputs)

    def training_step(self, batch, batch_idx):
        if self.global_step == self.scenario.failing:
            raise ValueError("as planned")
        loss = loss_of(self, batch)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx, dataloader_idx=0):
        loss = loss_of(self, batch)
        self.log("val_loss", loss)
        return loss

    def test_step(self, batch, batch_idx):
        return loss_of(self, batch)

    def predict_step(self, batch, batch_idx):
        return self(batch[0])

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.05)
        if not self.scenario.schedule:
            return optimizer
        steps = {"scheduler": rate(optimizer), "interval": "step"}
        return {"optimizer": optimizer, "lr_scheduler": steps}


def record(scenario):
    """Make the training of a scenario with the real Trainer."""
    seen, error = [], None
    trainer = pl.Trainer(
        accelerator="cpu",
        max_epochs=scenario.epochs,
        accumulate_grad_batches=scenario.accumulate,
        callbacks=scenario.callbacks(NAMES, seen),
        num_sanity_val_steps=0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    module, streams = Module(scenario), validation(scenario)
    try:
        trainer.fit(module, data(scenario.samples), streams if len(streams) > 1 else streams[0])
    except ValueError as failure:
        error = str(failure)
    steps = trainer.global_step
    if scenario.tests:
        trainer.test(module, data(8), verbose=False)
        trainer.predict(module, data(8))
    return {"seen": seen, "weights": numbers(module), "steps": steps, "error": error}


def main() -> None:
    """Write the record."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    recorded = {name: record(scenario) for name, scenario in SCENARIOS.items()}
    lines = [f"{json.dumps(name)}: {json.dumps(one)}" for name, one in recorded.items()]
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
