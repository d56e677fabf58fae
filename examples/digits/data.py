"""The 1,797 handwritten digits that come with scikit-learn, as three loaders.

Nothing is downloaded, and the split depends on the seed alone.
"""

from __future__ import annotations

from typing import Literal

import torch
from sklearn.datasets import load_digits
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

Split = Literal["train", "val", "test"]
Sample = tuple[Tensor, Tensor]

SHARES: dict[Split, tuple[float, float]] = {
    "train": (0.0, 0.7),
    "val": (0.7, 0.8),
    "test": (0.8, 1.0),
}


class Digits(Dataset[Sample]):
    """One split of the 8x8 digits: images of shape (1, 8, 8) and their classes.

    Every split is normalized by the mean and deviation of the training split, so that the model
    sees the same scale in training and test.

    Args:
        split: ``"train"`` (70 %), ``"val"`` (10 %) or ``"test"`` (20 %).
        max_shift: Shift each image at random by up to this many pixels. Only for training.
        split_seed: The seed that assigns digits to splits.
    """

    def __init__(self, split: Split, *, max_shift: int = 0, split_seed: int = 0) -> None:
        bunch = load_digits()
        images = torch.tensor(bunch.images, dtype=torch.float32).unsqueeze(1)
        targets = torch.tensor(bunch.target, dtype=torch.long)
        order = torch.randperm(len(images), generator=torch.Generator().manual_seed(split_seed))
        train = images[_part(order, "train")]
        own = _part(order, split)
        self.images = (images[own] - train.mean()) / train.std()
        self.targets = targets[own]
        self.max_shift = max_shift

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, index: int) -> Sample:
        image = self.images[index]
        if self.max_shift:
            image = shift(image, self.max_shift)
        return image, self.targets[index]


def _part(order: Tensor, split: Split) -> Tensor:
    first, last = (round(share * len(order)) for share in SHARES[split])
    return order[first:last]


def shift(image: Tensor, max_shift: int) -> Tensor:
    """Move an image by up to ``max_shift`` pixels; its edges are repeated."""
    rows, columns = torch.randint(0, 2 * max_shift + 1, (2,)).tolist()
    padded = torch.nn.functional.pad(image, [max_shift] * 4, mode="replicate")
    height, width = image.shape[-2:]
    return padded[..., rows : rows + height, columns : columns + width]


def digits_loader(
    split: Split, *, batch_size: int = 64, max_shift: int = 0, split_seed: int = 0
) -> DataLoader[Sample]:
    """Load one split in batches; only the training split is shuffled."""
    data = Digits(split, max_shift=max_shift, split_seed=split_seed)
    return DataLoader(data, batch_size=batch_size, shuffle=split == "train")
