"""What can be had without a network: ``python examples/gpt/baselines.py``.

Prints the loss in nats per token of tables of single tokens and of pairs of tokens, counted in the
training text of each stream. The model has to be better than both.
"""

from __future__ import annotations

from typing import get_args

import torch
from torch import Tensor

from corpus import END, VOCABULARY, Kind, encode, texts


def pairs(kind: Kind, split: str, modules: int | None = None) -> Tensor:
    """Count how often each token follows each other one."""
    counts = torch.zeros(VOCABULARY * VOCABULARY, dtype=torch.float64)
    for text in texts(kind, "val" if split == "val" else "train", modules):
        tokens = torch.tensor([END, *encode(text), END])
        counts += torch.bincount(tokens[:-1] * VOCABULARY + tokens[1:], minlength=len(counts))
    return counts.view(VOCABULARY, VOCABULARY)


def losses(kind: Kind, modules: int | None = None) -> dict[str, float]:
    """Return the loss on the validation text of a stream, by the kind of table."""
    seen, met = pairs(kind, "train", modules), pairs(kind, "val", modules)
    # A count of one or a tenth more, so that what was never seen has a chance.
    single = (seen.sum(0) + 1) / (seen.sum() + VOCABULARY)
    double = (seen + 0.1) / (seen + 0.1).sum(1, keepdim=True)
    total = met.sum()
    return {
        "unigram": float(-(met.sum(0) * single.log()).sum() / total),
        "bigram": float(-(met * double.log()).sum() / total),
    }


if __name__ == "__main__":
    for stream in get_args(Kind):
        shown = ", ".join(f"{name} {loss:.3f}" for name, loss in losses(stream).items())
        print(f"{stream}: {shown} nats per token")
