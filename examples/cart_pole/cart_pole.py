"""A pole on a cart, many of them at once: push left or right, and keep the pole up."""

from __future__ import annotations

import torch
from torch import Tensor

GRAVITY, CART, POLE, HALF_LENGTH, FORCE, SECONDS = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
FARTHEST, STEEPEST = 2.4, 12 * torch.pi / 180
LONGEST = 200
"""Steps after which an episode has succeeded."""


class CartPoles:
    """The state of each is the position and speed of the cart, the angle of the pole and its rate.

    Args:
        count: How many there are.
    """

    def __init__(self, count: int) -> None:
        self.state = torch.empty(count, 4).uniform_(-0.05, 0.05)
        self.standing = torch.ones(count, dtype=torch.bool)

    def step(self, push_right: Tensor) -> Tensor:
        """Push every cart once; return which poles stood until now."""
        _, speed, angle, rate = self.state.unbind(1)
        force = torch.where(push_right.bool(), FORCE, -FORCE)
        sine, cosine = angle.sin(), angle.cos()
        total = CART + POLE
        swing = (force + POLE * HALF_LENGTH * rate**2 * sine) / total
        turn = (GRAVITY * sine - cosine * swing) / (
            HALF_LENGTH * (4 / 3 - POLE * cosine**2 / total)
        )
        push = swing - POLE * HALF_LENGTH * turn * cosine / total
        change = torch.stack([speed, push, rate, turn], 1)
        self.state = self.state + SECONDS * change
        stood = self.standing.clone()
        fallen = (self.state[:, 0].abs() > FARTHEST) | (self.state[:, 2].abs() > STEEPEST)
        self.standing &= ~fallen
        return stood
