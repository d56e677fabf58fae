"""REINFORCE in a loop of our own: ``python examples/cart_pole/train_cart_pole.py``.

There is no data set: each batch is a number of episodes to play. The loop makes the update itself;
hooks, checkpoints and an exact resume come from ``trainer.loop()``.
"""

from __future__ import annotations

import argparse

import torch
from torch import Tensor, nn

from hookloop import Trainer
from hookloop.hooks import RequireMetric, SaveCheckpoint

from cart_pole import LONGEST, CartPoles


class Policy(nn.Module):
    """From the state to the logit of pushing right."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, state: Tensor) -> Tensor:
        """Return one logit per cart."""
        logits: Tensor = self.layers(state).squeeze(1)
        return logits


def play(policy: Policy, episodes: int) -> tuple[Tensor, Tensor]:
    """Play until all poles have fallen; return the loss and the mean number of steps."""
    carts = CartPoles(episodes)
    log_probabilities, stood = [], []
    for _ in range(LONGEST):
        logits = policy(carts.state)
        push_right = torch.bernoulli(logits.sigmoid().detach())
        log_probability = -nn.functional.binary_cross_entropy_with_logits(
            logits, push_right, reduction="none"
        )
        was_standing = carts.step(push_right)
        log_probabilities.append(log_probability)
        stood.append(was_standing.float())
        if not carts.standing.any():
            break
    rewards = torch.stack(stood)
    returns = rewards.flip(0).cumsum(0).flip(0)  # Steps that are still to come.
    # Compared with the other episodes at the same step, so that only what is better counts.
    advantage = (returns - returns.mean(1, keepdim=True)) / (returns.std() + 1e-6)
    loss = -(torch.stack(log_probabilities) * advantage * rewards).sum() / rewards.sum()
    return loss, rewards.sum(0).mean()


def main() -> None:
    """Train, and print how long the pole stands."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=150)
    parser.add_argument("--run-dir", default=None)
    arguments = parser.parse_args()
    torch.manual_seed(0)
    policy = Policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=2e-2)
    trainer = Trainer(
        policy,
        train_data=[32] * 10,  # episodes of each update; an epoch is ten updates
        optimizer=optimizer,
        max_iters=arguments.updates,
        seed=0,
        run_dir=arguments.run_dir,
        resume="auto" if arguments.run_dir else None,
        default_hooks={"checkpoint": SaveCheckpoint(every="5 epochs")},
        hooks=[RequireMetric("train/steps", above=15, by="10 epochs")],
    )
    with trainer.loop() as batches:
        for episodes in batches:
            optimizer.zero_grad()
            loss, steps = play(policy, episodes)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            trainer.record(loss, steps=steps)
    with torch.no_grad():
        _, steps = play(policy, 256)
    print(f"the pole stands for {steps:.0f} of {LONGEST} steps")


if __name__ == "__main__":
    main()
