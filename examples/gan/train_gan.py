"""Train the GAN from Python: ``python examples/gan/train_gan.py``.

The same run as config.yaml, written out.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from hookloop import Data, Outcome, Trainer

from gan import Gan, discriminator_step, generator_step
from judging import JudgePoints
from ring import Ring


def train(run_dir: Path | None = None, *, max_iters: int = 1500) -> Outcome:
    """Train both networks in each iteration, one after the other, each with its own optimizer."""
    torch.manual_seed(0)
    model = Gan()
    trainer = Trainer(
        model=model,
        train_data=Ring(batch_size=256),
        optimizer={
            "discriminator": torch.optim.Adam(
                model.discriminator.parameters(), lr=1e-3, betas=(0.5, 0.9)
            ),
            "generator": torch.optim.Adam(model.generator.parameters(), lr=1e-3, betas=(0.5, 0.9)),
        },
        step={"discriminator": discriminator_step, "generator": generator_step},
        max_iters=max_iters,
        data=Data(epoch_iters=250),
        hooks=[JudgePoints(every="250 iters")],
        run_dir=run_dir,
        seed=0,
    )
    return trainer.train()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--run-dir", type=Path)
    parser.add_argument("--max-iters", type=int, default=1500)
    options = parser.parse_args()
    outcome = train(options.run_dir, max_iters=options.max_iters)
    assert outcome.run_dir is not None
    print((outcome.run_dir / "points.txt").read_text(encoding="utf-8"))
    near, modes = outcome.metrics["points/near"], outcome.metrics["points/modes"]
    print(f"{near:.0%} of the points are near a cloud; {modes:.0f} of 8 clouds are covered")
