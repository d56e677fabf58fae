"""Eight clouds of points on a ring, a known test for a GAN that learns only some of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

MODES = 8
RADIUS = 2.0
DEVIATION = 0.1


def centers() -> Tensor:
    """Return the center of each cloud."""
    angles = torch.arange(MODES) * (2 * math.pi / MODES)
    return RADIUS * torch.stack([angles.cos(), angles.sin()], dim=1)


class Ring:
    """An endless stream of batches of points; it has no length.

    Its ``state_dict`` is the position in the stream, so that a resumed run continues with the
    points that the interrupted one would have seen.

    Args:
        batch_size: Points in a batch.
        seed: The seed of the points.
    """

    def __init__(self, batch_size: int = 256, seed: int = 0) -> None:
        self.batch_size = batch_size
        self.generator = torch.Generator().manual_seed(seed)

    def __iter__(self) -> Iterator[Tensor]:
        middles = centers()
        while True:
            which = torch.randint(MODES, (self.batch_size,), generator=self.generator)
            noise = torch.randn(self.batch_size, 2, generator=self.generator)
            yield middles[which] + DEVIATION * noise

    def state_dict(self) -> dict[str, Tensor]:
        """Return the position in the stream."""
        return {"generator": self.generator.get_state()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Move to a position in the stream."""
        self.generator.set_state(state["generator"])


def judge(points: Tensor) -> dict[str, float]:
    """Return scores of generated points.

    Returns:
        ``near``: share of points within four deviations of a center; ``modes``: how many clouds
        have at least a quarter of the points that an even distribution would give them.
    """
    distance, nearest = torch.cdist(points, centers().to(points)).min(dim=1)
    near = distance < 4 * DEVIATION
    counts = torch.bincount(nearest[near], minlength=MODES)
    return {
        "near": near.float().mean().item(),
        "modes": float((counts >= len(points) / MODES / 4).sum()),
    }
