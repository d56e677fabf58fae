"""Train the digits on two workers of Ray Train: ``python examples/ray_train/train_digits.py``.

Ray starts the workers and connects them; hookloop finds that and uses it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

DIGITS = Path(__file__).resolve().parents[1] / "digits"


def train(settings: dict[str, str]) -> None:
    """Train on one worker; the batch size is that of all workers together."""
    import torch

    from hookloop import Trainer

    sys.path.insert(0, str(DIGITS))
    from data import digits_loader
    from model import DigitsNet, accuracy

    torch.manual_seed(0)
    model = DigitsNet(width=32)
    trainer = Trainer(
        model,
        train_data=digits_loader("train", batch_size=64, max_shift=1),
        val_data=digits_loader("val", batch_size=512),
        loss=torch.nn.functional.cross_entropy,
        metrics={"accuracy": accuracy},
        optimizer=torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2),
        max_epochs=int(settings["max_epochs"]),
        run_dir=settings["run_dir"],
        resume="auto",  # Ray starts the workers again after a failure, if it is told to.
        seed=0,
    )
    trainer.train()


if __name__ == "__main__":
    from ray.train import FailureConfig, RunConfig, ScalingConfig
    from ray.train.torch import TorchTrainer

    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--run-dir", type=Path, default=Path("runs/ray"))
    parser.add_argument("--max-epochs", type=int, default=15)
    options = parser.parse_args()
    run_dir = str(options.run_dir.absolute())  # Workers have other working directories.
    TorchTrainer(
        train,
        train_loop_config={"run_dir": run_dir, "max_epochs": str(options.max_epochs)},
        scaling_config=ScalingConfig(num_workers=2, use_gpu=False),
        run_config=RunConfig(failure_config=FailureConfig(max_failures=1)),
    ).fit()
