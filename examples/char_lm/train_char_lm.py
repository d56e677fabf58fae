"""Train the language model from Python: ``python examples/char_lm/train_char_lm.py``.

The same run as config.yaml, written out.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from hookloop import Outcome, Setup, Trainer

from char_model import CharModel
from language import write
from sampling import AFTER_SAMPLE, KeepSamples, SampleText
from windows import windows_loader


def train(run_dir: Path | None = None, *, max_epochs: int = 4, length: int = 80_000) -> Outcome:
    """Train for some epochs; each is followed by a validation and a sample of text."""
    torch.manual_seed(0)
    model = CharModel(width=128)
    train_data = windows_loader(length, seed=0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=1e-2, total_steps=max_epochs * len(train_data)
    )
    trainer = Trainer(
        model=model,
        train_data=train_data,
        val_data=windows_loader(8_000, seed=1, stride=64, batch_size=128),
        optimizer=optimizer,
        schedule=schedule,
        clip_norm=1.0,
        max_epochs=max_epochs,
        setup=Setup(points=[AFTER_SAMPLE]),
        hooks=[SampleText(length=200), KeepSamples()],
        run_dir=run_dir,
        seed=0,
    )
    return trainer.train()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--run-dir", type=Path)
    parser.add_argument("--max-epochs", type=int, default=4)
    parser.add_argument("--length", type=int, default=80_000, help="characters to train on")
    options = parser.parse_args()
    outcome = train(options.run_dir, max_epochs=options.max_epochs, length=options.length)
    _, floor = write(8_000, seed=1)
    print(f"validation loss {outcome.metrics['val/loss']:.3f} nats per character; ", end="")
    print(f"the lower bound is {floor:.3f}")
    assert outcome.run_dir is not None
    print(f"samples: {outcome.run_dir / 'samples.txt'}")
