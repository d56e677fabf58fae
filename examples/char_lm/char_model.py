"""A character-level language model that computes its own loss."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from language import ALPHABET


class CharModel(nn.Module):
    """A recurrent network over characters.

    Its forward pass takes a batch of windows and returns a mapping with the loss, so a run needs
    neither ``loss`` nor ``step``.

    Args:
        width: Size of the recurrent state.
        embedding: Size of a character's vector.
    """

    def __init__(self, width: int = 128, embedding: int = 32) -> None:
        super().__init__()
        self.embed = nn.Embedding(len(ALPHABET), embedding)
        self.recur = nn.GRU(embedding, width, batch_first=True)
        self.score = nn.Linear(width, len(ALPHABET))

    def forward(self, windows: Tensor) -> dict[str, Tensor]:
        """Predict each character of the windows from those before it; ``loss`` is in nats."""
        states, _ = self.recur(self.embed(windows[:, :-1]))
        scores = self.score(states)
        loss = functional.cross_entropy(scores.flatten(0, 1), windows[:, 1:].flatten())
        return {"loss": loss, "output": scores}

    @torch.no_grad()
    def generate(self, start: Tensor, length: int, generator: torch.Generator) -> Tensor:
        """Draw ``length`` more characters of a sequence of character numbers."""
        character, state = start, None
        drawn: list[Tensor] = []
        for _ in range(length):
            states, state = self.recur(self.embed(character), state)
            chances = self.score(states[-1]).softmax(dim=0)
            character = torch.multinomial(chances, 1, generator=generator)
            drawn.append(character)
        return torch.cat(drawn)
