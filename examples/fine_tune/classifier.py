"""A classifier of texts: an encoder, the mean of its states, and a new layer."""

from __future__ import annotations

from torch import Tensor, nn

from encoders import PADDING, Encoder, make_encoder


class TextClassifier(nn.Module):
    """Scores the topics of a text.

    Args:
        topics: Number of topics.
        encoder: ``"minilm"``, pre-trained, or ``"tiny"``, of random weights.
        dropout: Share of the mean state that the new layer does not see in training.
    """

    def __init__(self, topics: int, encoder: Encoder = "minilm", dropout: float = 0.1) -> None:
        super().__init__()
        self.body, width = make_encoder(encoder)
        self.head = nn.Sequential(nn.Dropout(dropout), nn.Linear(width, topics))

    def forward(self, input_ids: Tensor) -> Tensor:
        """Return the scores of the topics; padding takes no part."""
        mask = input_ids != PADDING
        states = self.body(input_ids=input_ids, attention_mask=mask.long()).last_hidden_state
        counted = mask.unsqueeze(-1).to(states.dtype)
        mean = (states * counted).sum(1) / counted.sum(1).clamp(min=1)
        scores: Tensor = self.head(mean)
        return scores


def accuracy(output: Tensor, targets: Tensor) -> Tensor:
    """Return the share of texts whose highest score is the right topic."""
    return (output.argmax(dim=1) == targets).float().mean()
