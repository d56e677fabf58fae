"""A task that is quickly learned: whether eight numbers sum to more than nothing."""

import torch
from torch.utils.data import DataLoader, TensorDataset, default_collate

collate = default_collate


class Digits(TensorDataset):
    def __init__(self, split: str = "train") -> None:
        seed = {"train": 0, "val": 1, "test": 2}[split]
        inputs = torch.randn(64, 8, generator=torch.Generator().manual_seed(seed))
        super().__init__(inputs, (inputs.sum(1) > 0).long())


class Wide(Digits):
    """Samples with a column too many, for a page that shows the error."""

    def __init__(self, split: str = "train") -> None:
        super().__init__(split)
        inputs, targets = self.tensors
        self.tensors = (torch.cat([inputs, inputs[:, :1]], dim=1), targets)


def wide_loader(split: str = "train", batch_size: int = 16):
    return DataLoader(Wide(split), batch_size=batch_size)


def loader(split: str = "train", batch_size: int = 16):
    return DataLoader(Digits(split), batch_size=batch_size, shuffle=split == "train")
