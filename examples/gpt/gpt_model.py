"""A small decoder-only transformer, and the step that trains it."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from hookloop import Run

from corpus import END, IGNORED, VOCABULARY, Batch


class Block(nn.Module):
    """Attention to what came before, and a small network; each is added to its input."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention = nn.LayerNorm(width)
        self.attend = nn.Linear(width, 3 * width, bias=False)
        self.attended = nn.Linear(width, width, bias=False)
        self.think = nn.Sequential(
            nn.LayerNorm(width),
            nn.Linear(width, 4 * width),
            nn.GELU(),
            nn.Linear(4 * width, width),
        )

    def forward(self, states: Tensor) -> Tensor:
        """Return the states of the next layer."""
        batch, length, width = states.shape
        parts = self.attend(self.before_attention(states))
        shape = (batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.view(shape).permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        states = states + self.attended(seen.transpose(1, 2).reshape(batch, length, width))
        thought: Tensor = self.think(states)
        return states + thought


class GPT(nn.Module):
    """Predicts each token of a text from those before it.

    Padding comes after the text, where no token that counts can see it, so that no mask is needed.

    Args:
        width: Size of a state.
        layers: Number of blocks.
        heads: Attention heads of a block.
        context: The longest text, in tokens.
    """

    def __init__(
        self, width: int = 128, layers: int = 4, heads: int = 4, context: int = 128
    ) -> None:
        super().__init__()
        self.context = context
        self.embed = nn.Embedding(VOCABULARY, width)
        self.place = nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.apply(_initialize)

    def forward(self, input_ids: Tensor) -> Tensor:
        """Return the scores of the token that follows each token."""
        places = torch.arange(input_ids.shape[1], device=input_ids.device)
        states = self.blocks(self.embed(input_ids) + self.place(places))
        return functional.linear(self.norm(states), self.embed.weight)

    @torch.no_grad()
    def write(self, start: list[int], length: int, generator: torch.Generator) -> list[int]:
        """Continue a text by ``length`` tokens, or until the model ends it."""
        tokens = torch.tensor([[END, *start]], device=self.embed.weight.device)
        for _ in range(length):
            scores = self(tokens[:, -self.context :])[0, -1]
            drawn = torch.multinomial((scores / 0.7).softmax(0), 1, generator=generator)
            if drawn.item() == END:
                break
            tokens = torch.cat([tokens, drawn[None]], dim=1)
        return [int(token) for token in tokens[0]]


def _initialize(module: nn.Module) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)


def step(run: Run, batch: Batch) -> dict[str, Tensor]:
    """Return the mean loss of the tokens that count, and how many they are.

    The number is the weight of the microbatch, so that an update is that of all its tokens: the
    mean over microbatches would let a token count more where there are few.
    """
    targets = batch["targets"]
    scores = run.model(batch["input_ids"])
    loss = functional.cross_entropy(scores.flatten(0, 1), targets.flatten(), ignore_index=IGNORED)
    return {"loss": loss, "weight": (targets != IGNORED).sum()}
