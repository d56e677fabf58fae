"""A hook that lets the model write."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from hookloop import Hook, Run

from corpus import decode, encode
from gpt_model import GPT


class WriteText(Hook):
    """Let the model continue some texts after each validation; they go to ``samples.txt``.

    It draws from its own generator, so that the random numbers of the training do not change.

    Args:
        starts: The texts to continue.
        length: Tokens to draw for each.
        seed: The seed of the drawing, the same each time, so that texts are comparable.
    """

    def __init__(
        self,
        starts: Sequence[str] = ("def ", "Return "),
        length: int = 200,
        seed: int = 0,
    ) -> None:
        self.starts = starts
        self.length = length
        self.seed = seed

    def after_val(self, run: Run) -> None:
        assert isinstance(run.model, GPT)
        generator = torch.Generator(run.device).manual_seed(self.seed)
        drawn = [run.model.write(encode(one), self.length, generator) for one in self.starts]
        if run.world.is_main:  # On many ranks, all of them have drawn the same text.
            with (run.dir / "samples.txt").open("a", encoding="utf-8") as file:
                file.write(f"--- iteration {run.progress.iter}\n")
                file.writelines(f"{decode(tokens)}\n\n" for tokens in drawn)
