"""A generator and a discriminator in one module, and the two steps that train them in turn."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from hookloop import Run


class Gan(nn.Module):
    """A generator that makes points from noise, and a discriminator that detects them.

    Args:
        noise: How many random numbers a point is made from.
        width: Width of the hidden layers of both networks.
    """

    def __init__(self, noise: int = 16, width: int = 128) -> None:
        super().__init__()
        self.noise = noise
        self.generator = _perceptron(noise, width, 2)
        self.discriminator = _perceptron(2, width, 1)

    def generate(self, count: int) -> Tensor:
        """Generate points from new noise."""
        device = next(self.parameters()).device
        points: Tensor = self.generator(torch.randn(count, self.noise, device=device))
        return points


def discriminator_step(run: Run, batch: object) -> dict[str, Tensor]:
    """Return the loss of the discriminator: real points score high, generated ones low.

    A penalty on its slope at the real points (R1) keeps the generator from moving around among a
    few clouds. It is returned with the loss, and so recorded as ``train/slope``.
    """
    model = _gan(run)
    assert isinstance(batch, Tensor)
    real = batch.requires_grad_()
    with torch.no_grad():
        generated = model.generate(len(real))
    scores = model.discriminator(real)
    (gradient,) = torch.autograd.grad(scores.sum(), real, create_graph=True)
    slope = gradient.square().sum(dim=1).mean()
    loss = (
        functional.softplus(-scores).mean()
        + functional.softplus(model.discriminator(generated)).mean()
    )
    return {"loss": loss + 0.05 * slope, "slope": slope}


def generator_step(run: Run, batch: object) -> Tensor:
    """Return the loss of the generator: its points score high."""
    model = _gan(run)
    assert isinstance(batch, Tensor)
    return functional.softplus(-model.discriminator(model.generate(len(batch)))).mean()


def _gan(run: Run) -> Gan:
    assert isinstance(run.model, Gan)
    return run.model


def _perceptron(inputs: int, width: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, width),
        nn.LeakyReLU(0.2),
        nn.Linear(width, width),
        nn.LeakyReLU(0.2),
        nn.Linear(width, outputs),
    )
