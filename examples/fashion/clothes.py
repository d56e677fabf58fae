"""Fashion-MNIST, as three loaders: 70,000 grey pictures of clothes in ten classes.

They are read from the files of Debian's package ``dataset-fashion-mnist``, or from the same four
files elsewhere.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from hookloop.errors import DataError

Split = Literal["train", "val", "test"]
Sample = tuple[Tensor, Tensor]

ROOT = "/usr/share/datasets/fashion-mnist"
MEAN, DEVIATION = 0.286, 0.353
"""Of the pixels of the training pictures."""

HELD_BACK = 12
"""One in so many training pictures is held back for the validation."""

NAMES = ("T-shirt", "trousers", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag",
         "ankle boot")  # fmt: skip


def read_idx(file: Path) -> Tensor:
    """Read a gzipped file in the format of MNIST: a header of big-endian sizes, then bytes."""
    if not file.is_file():
        raise DataError(
            f"'{file}' does not exist. Fashion-MNIST is not installed: apt-get install "
            "dataset-fashion-mnist, or give the directory of its four .gz files as root=."
        )
    content = gzip.decompress(file.read_bytes())
    if content[:3] != b"\0\0\x08":
        raise DataError(f"'{file}' is not in the format of MNIST: it does not begin with 0 0 8.")
    sizes = np.frombuffer(content, dtype=">u4", count=content[3], offset=4).astype(int)
    values = np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * content[3])
    if len(values) != sizes.prod():
        raise DataError(f"'{file}' is cut off: {len(values)} values instead of {sizes.prod()}.")
    return torch.from_numpy(values.reshape(sizes).copy())


class Clothes(Dataset[Sample]):
    """One split: pictures of shape (1, 28, 28) and their classes.

    Args:
        split: ``"train"``, ``"val"`` (one in twelve of the pictures for training) or ``"test"``.
        root: The directory of the files.
        augment: Flip and shift each picture at random. Only for training.
    """

    def __init__(self, split: Split, root: str | Path = ROOT, *, augment: bool = False) -> None:
        prefix = "t10k" if split == "test" else "train"
        pictures = read_idx(Path(root) / f"{prefix}-images-idx3-ubyte.gz")
        targets = read_idx(Path(root) / f"{prefix}-labels-idx1-ubyte.gz").long()
        if split != "test":
            is_val = torch.arange(len(targets)) % HELD_BACK == 0
            own = is_val if split == "val" else ~is_val
            pictures, targets = pictures[own], targets[own]
        self.pictures, self.targets = pictures.unsqueeze(1), targets
        self.augment = augment

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, index: int) -> Sample:
        picture = (self.pictures[index] / 255 - MEAN) / DEVIATION
        if self.augment:
            picture = shift(picture.flip(-1) if torch.rand(()) < 0.5 else picture)
        return picture, self.targets[index]


def shift(picture: Tensor, reach: int = 2) -> Tensor:
    """Move a picture by up to ``reach`` pixels; what comes in is background."""
    down, right = torch.randint(-reach, reach + 1, (2,)).tolist()
    moved = torch.full_like(picture, -MEAN / DEVIATION)
    height, width = picture.shape[-2:]
    to = slice(max(down, 0), height + min(down, 0)), slice(max(right, 0), width + min(right, 0))
    of = slice(max(-down, 0), height - max(down, 0)), slice(max(-right, 0), width - max(right, 0))
    moved[(..., *to)] = picture[(..., *of)]
    return moved


def clothes_loader(
    split: Split, *, root: str | Path = ROOT, batch_size: int = 128, augment: bool = False
) -> DataLoader[Sample]:
    """Load one split in batches; only the training split is shuffled."""
    data = Clothes(split, root, augment=augment)
    return DataLoader(data, batch_size=batch_size, shuffle=split == "train")
