"""``mmengine.structures.LabelData``: the labels of a sample."""

from __future__ import annotations

from torch import Tensor

from hookloop_mmengine.structures.data_element import BaseDataElement


class LabelData(BaseDataElement):
    """Labels, as their numbers or as a vector with a place for each class."""

    @staticmethod
    def onehot_to_label(onehot: Tensor) -> Tensor:
        """Return the numbers of the classes whose place in a vector is 1.

        >>> import torch
        >>> LabelData.onehot_to_label(torch.tensor([0, 1, 1]))
        tensor([1, 2])
        """
        if not isinstance(onehot, Tensor):
            raise AssertionError(f"onehot should be a tensor, not {type(onehot)}")
        if onehot.ndim != 1 or onehot.max() > 1 or onehot.min() < 0:
            raise ValueError("input is not one-hot and can not convert to label")
        return onehot.nonzero().squeeze(-1)

    @staticmethod
    def label_to_onehot(label: Tensor, num_classes: int) -> Tensor:
        """Return a vector that is 1 at the places of some classes.

        >>> import torch
        >>> LabelData.label_to_onehot(torch.tensor([1, 2]), 4)
        tensor([0, 1, 1, 0])
        """
        if not isinstance(label, Tensor):
            raise AssertionError(f"label should be a tensor, not {type(label)}")
        if label.numel() and label.max() >= num_classes:
            raise AssertionError(f"A label is {int(label.max())}, of {num_classes} classes.")
        onehot = label.new_zeros((num_classes,))
        onehot[label] = 1
        return onehot
