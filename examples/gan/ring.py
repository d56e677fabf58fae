"""Eight clouds of points on a ring, the usual trap for a GAN that learns only some of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

MODES = 8
RADIUS = 2.0
DEVIATION = 0.1


def centres() -> Tensor:
    """Return the middle of each cloud."""
    angles = torch.arange(MODES) * (2 * math.pi / MODES)
    return RADIUS * torch.stack([angles.cos(), angles.sin()], dim=1)


class Ring:
    """An endless stream of batches of points; it has no length.

    Its ``state_dict`` is its place in the stream, so that a resumed run goes on with the points
    that the interrupted one would have seen.

    Args:
        batch_size: Points in a batch.
        seed: Of the points.
    """

    def __init__(self, batch_size: int = 256, seed: int = 0) -> None:
        self.batch_size = batch_size
        self.generator = torch.Generator().manual_seed(seed)

    def __iter__(self) -> Iterator[Tensor]:
        middles = centres()
        while True:
            which = torch.randint(MODES, (self.batch_size,), generator=self.generator)
            noise = torch.randn(self.batch_size, 2, generator=self.generator)
            yield middles[which] + DEVIATION * noise

    def state_dict(self) -> dict[str, Tensor]:
        """Return the place in the stream."""
        return {"generator": self.generator.get_state()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Go to a place in the stream."""
        self.generator.set_state(state["generator"])


def judge(points: Tensor) -> dict[str, float]:
    """Tell how good generated points are.

    Returns:
        ``near``: share of points within four deviations of a centre; ``modes``: how many of the
        clouds got at least a quarter of the points that are due to them.
    """
    distance, nearest = torch.cdist(points, centres().to(points)).min(dim=1)
    near = distance < 4 * DEVIATION
    counts = torch.bincount(nearest[near], minlength=MODES)
    return {
        "near": near.float().mean().item(),
        "modes": float((counts >= len(points) / MODES / 4).sum()),
    }
