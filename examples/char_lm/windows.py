"""Windows of the made-up language, in batches of character numbers."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from language import ALPHABET, write


def encode(text: str) -> Tensor:
    """Turn a text into the numbers of its characters."""
    return torch.tensor([ALPHABET.index(character) for character in text])


def decode(numbers: Tensor) -> str:
    """Turn numbers back into a text."""
    return "".join(ALPHABET[number] for number in numbers.tolist())


class Windows(Dataset[Tensor]):
    """Overlapping windows of one text.

    Args:
        length: Characters in the text.
        seed: The seed of the text; training and validation need different ones.
        window: Characters in a window; the model predicts all but the first.
        stride: Characters between the beginnings of two windows.
    """

    def __init__(self, length: int, seed: int, *, window: int = 65, stride: int = 16) -> None:
        text, _ = write(length, seed)
        self.windows = encode(text).unfold(0, window, stride)

    def __len__(self) -> int:
        return len(self.windows)

    def __getitem__(self, index: int) -> Tensor:
        return self.windows[index]


def windows_loader(
    length: int, seed: int, *, window: int = 65, stride: int = 16, batch_size: int = 32
) -> DataLoader[Tensor]:
    """Load windows in batches and in random order."""
    data = Windows(length, seed, window=window, stride=stride)
    return DataLoader(data, batch_size=batch_size, shuffle=True)
